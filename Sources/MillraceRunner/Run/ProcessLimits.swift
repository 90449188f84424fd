internal import Glibc
internal import MillraceCore
internal import MillraceGraph

/// Checks the resource limits of this process before a run needs the resources. Swift's heap and Dispatch do not report an error when they
/// reach a limit: they abort the process.
struct ProcessLimits {
  /// Descriptors that must be free before nodes are created: Dispatch's event loop needs two permanently (epoll, eventfd) and up to three
  /// for timers, the socket event loop three, `top` two; and Dispatch occasionally opens a file about its threads.
  static let filesToBegin = 12
  /// Descriptors that must be free after all nodes have been created.
  static let filesToRun = 6
  /// Address space that must stay free for thread stacks, library buffers and the final messages.
  private static let spareMemory = 64 << 20

  /// Address space in use before any graph was loaded, in bytes.
  private let baseline: Int

  init() { baseline = Self.addressSpace ?? 0 }

  // MARK: Open files

  /// Prints an error and throws when fewer than `needed` files can be opened. Opens none.
  static func checkFiles(_ needed: Int) throws(ExitStatus) {
    guard let limit = limit(RLIMIT_NOFILE) else { return }
    var (open, free) = (0, 0)
    for descriptor in 0..<limit {
      if fcntl(Int32(descriptor), F_GETFD) >= 0 { open += 1 } else { free += 1 }
      if free >= needed { return }
    }
    Output.error.write(
      "error: too many open files: \(open) of \(limit) (ulimit -n) are in use, and the runner needs \(needed) more; raise the limit, or run fewer instances\n"
    )
    throw .refused
  }

  /// Prints an error and throws when the remaining instances need more files than can be opened.
  static func checkFiles(forInstances count: Int, beyond made: Int, each: Int, open: Int) throws(ExitStatus) {
    guard let limit = limit(RLIMIT_NOFILE),
      each.multipliedClamped(by: count - made) > limit - open - filesToRun
    else { return }
    Output.error.write(
      "error: \(count) instances need too many open files: \(open) of \(limit) (ulimit -n) are in use with \(made) instances, and each opens \(each); raise the limit, or run fewer instances\n"
    )
    throw .refused
  }

  /// Number of descriptors in use, without the one that counts them; nil when unknown. proc(5).
  static var openFiles: Int? {
    guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    // Without ".", ".." and the descriptor of the directory itself.
    return count - 3
  }

  // MARK: Memory

  /// Prints an error and throws when another instance probably does not fit into the address space of this process. Adds a margin of half
  /// the memory of the existing instances, because they grow when they run and when they report.
  func checkMemory(forInstance number: Int, of count: Int) throws(ExitStatus) {
    guard let limit = Self.limit(RLIMIT_AS), let used = Self.addressSpace else { return }
    guard limit - used < Self.spareMemory + (used - baseline) / 2 else { return }
    let what = count > 1 ? "instance \(number) of \(count)" : "the graph"
    Output.error.write(
      "error: not enough memory for \(what): the process already uses \(Figures.bytes(used)) of \(Figures.bytes(limit)) of address space (ulimit -v); \(count > 1 ? "run fewer instances, or " : "")raise the limit\n"
    )
    throw .refused
  }

  /// Prints an error and throws when the remaining instances, each with at least the given number of bytes, do not fit into the address
  /// space of this process.
  func checkMemory(forInstances count: Int, beyond made: Int, each: Int) throws(ExitStatus) {
    guard let limit = Self.limit(RLIMIT_AS), let used = Self.addressSpace,
      each.multipliedClamped(by: count - made) > limit - used - Self.spareMemory
    else { return }
    Output.error.write(
      "error: not enough memory for \(count) instances: the process already uses \(Figures.bytes(used)) of \(Figures.bytes(limit)) of address space (ulimit -v), and each instance needs at least \(Figures.bytes(each)) for media; run fewer instances, or raise the limit\n"
    )
    throw .refused
  }

  /// Address space in use, in bytes; nil when unknown. proc(5).
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

  /// A resource limit of this process; nil when it is unlimited.
  private static func limit(_ kind: __rlimit_resource) -> Int? {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(kind.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max
    else { return nil }
    return Int(clamping: limit.rlim_cur)
  }
}
