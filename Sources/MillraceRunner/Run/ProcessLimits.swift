internal import Glibc
internal import MillraceCore
internal import MillraceGraph

/// What the system allows this process, looked at before a run needs it. Neither Swift's heap nor Dispatch answers a refusal in
/// words: they end the process on the spot.
struct ProcessLimits {
  /// Descriptors that must be free before nodes are made: Dispatch's event loop takes two for good (epoll, eventfd) and up to three
  /// timers, the loop of the sockets three, `top` two; and Dispatch opens a file of its threads now and then.
  static let filesToBegin = 12
  /// Descriptors that must be free once all nodes are made.
  static let filesToRun = 6
  /// Address space that must be free whatever happens: threads' stacks, buffers of libraries, the words of the end.
  private static let spareMemory = 64 << 20

  /// Address space that was in use before there was anything of the graphs, in bytes.
  private let baseline: Int

  init() { baseline = Self.addressSpace ?? 0 }

  // MARK: Open files

  /// Refuses in words when fewer than so many more files may be opened. Opens none.
  static func checkFiles(_ needed: Int) throws(ExitStatus) {
    guard let limit = limit(RLIMIT_NOFILE) else { return }
    var (open, free) = (0, 0)
    for descriptor in 0..<limit {
      if fcntl(Int32(descriptor), F_GETFD) >= 0 { open += 1 } else { free += 1 }
      if free >= needed { return }
    }
    Output.error.write(
      "error: this process may have \(limit) files open (ulimit -n) and has \(open); the runner needs \(needed) more for itself; raise the limit, or run fewer instances\n"
    )
    throw .refused
  }

  /// Refuses in words when so many files for each of the instances that are still to be made are more than may be opened.
  static func checkFiles(forInstances count: Int, beyond made: Int, each: Int, open: Int) throws(ExitStatus) {
    guard let limit = limit(RLIMIT_NOFILE),
      each.multipliedClamped(by: count - made) > limit - open - filesToRun
    else { return }
    Output.error.write(
      "error: \(count) instances need more files than this process may open: it may have \(limit) (ulimit -n) and has \(open) with \(made) instances, each of which opens \(each); raise the limit, or run fewer instances\n"
    )
    throw .refused
  }

  /// Descriptors in use, but for the one that counts them; nil when the system does not tell. proc(5).
  static var openFiles: Int? {
    guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    // Beside the files there are ".", ".." and the folder itself.
    return count - 3
  }

  // MARK: Memory

  /// Refuses in words when an instance more is likely not to fit into the address space that this process may have. What the
  /// instances up to now take is counted half as much again: they grow when they run, and tell how they went at the end.
  func checkMemory(forInstance number: Int, of count: Int) throws(ExitStatus) {
    guard let limit = Self.limit(RLIMIT_AS), let used = Self.addressSpace else { return }
    guard limit - used < Self.spareMemory + (used - baseline) / 2 else { return }
    let what = count > 1 ? "instance \(number) of \(count)" : "the graph"
    Output.error.write(
      "error: there is no memory for \(what): this process may have \(Figures.bytes(limit)) of address space (ulimit -v) and uses \(Figures.bytes(used)) before anything runs; \(count > 1 ? "run fewer instances, or " : "")raise the limit\n"
    )
    throw .refused
  }

  /// Refuses in words when the instances that are still to be made, each with so many bytes at least, are more than the address space
  /// that this process may have.
  func checkMemory(forInstances count: Int, beyond made: Int, each: Int) throws(ExitStatus) {
    guard let limit = Self.limit(RLIMIT_AS), let used = Self.addressSpace,
      each.multipliedClamped(by: count - made) > limit - used - Self.spareMemory
    else { return }
    Output.error.write(
      "error: there is no memory for \(count) instances: this process may have \(Figures.bytes(limit)) of address space (ulimit -v) and uses \(Figures.bytes(used)), and each instance takes \(Figures.bytes(each)) for its media alone; run fewer instances, or raise the limit\n"
    )
    throw .refused
  }

  /// Bytes of address space in use; nil when the system does not tell. proc(5).
  private static var addressSpace: Int? {
    let file = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 128)
    let count = unsafe read(file, &text, text.count)
    guard count > 0 else { return nil }
    let pages = text[..<count].prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    return Int(String(decoding: pages, as: UTF8.self)).map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
  }

  /// A limit of this process; nil when there is none.
  private static func limit(_ kind: __rlimit_resource) -> Int? {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(kind.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max
    else { return nil }
    return Int(clamping: limit.rlim_cur)
  }
}
