internal import Glibc

/// The most memory this process can use: that of the machine, or less when a control group (a container, a service's slice) limits
/// it.
///
/// Swap does not count: media paged in from disk comes too late. Memory used by other processes is not subtracted, because it
/// changes from moment to moment.
public struct MachineMemory: Sendable, Hashable {
  /// What sets the limit.
  public enum Source: Sendable, Hashable {
    /// The installed memory.
    case machine
    /// The control group at this path, relative to the mount point of its hierarchy.
    case controlGroup(String)
  }

  /// The limit in bytes.
  public let bytes: Int
  /// What sets it.
  public let source: Source

  /// Creates a limit that is known from elsewhere.
  public init(bytes: Int, source: Source) {
    self.bytes = bytes
    self.source = source
  }

  /// The current limit, read from `/proc` and `/sys/fs/cgroup`; nil when neither reports one. Reads several files: for the control side.
  public static func limit() -> MachineMemory? { limit { SystemText.read($0) } }

  /// The limit by the files whose text `read` returns.
  package static func limit(_ read: (String) -> String?) -> MachineMemory? {
    let machine = read("/proc/meminfo").flatMap(installed)
    let limits = (machine.map { [$0] } ?? []) + controlGroups(read)
    return limits.min { $0.bytes < $1.bytes }
  }

  /// `MemTotal` of `/proc/meminfo`, in units of 1,024 bytes. proc(5).
  private static func installed(_ text: String) -> MachineMemory? {
    for line in text.split(separator: "\n") where line.hasPrefix("MemTotal:") {
      let digits = line.split(separator: " ").dropFirst().first ?? ""
      return Int(digits).map { MachineMemory(bytes: $0.multipliedClamped(by: 1_024), source: .machine) }
    }
    return nil
  }

  /// The limits of this process's control groups. A line of `/proc/self/cgroup` without a controller belongs to version 2, which
  /// machines with both versions mount under `unified`. cgroups(7).
  private static func controlGroups(_ read: (String) -> String?) -> [MachineMemory] {
    guard let groups = read("/proc/self/cgroup") else { return [] }
    var found: [MachineMemory] = []
    for line in groups.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      if parts[1].isEmpty {
        for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
          found += limits(of: parts[2], under: mount, in: "memory.max", read)
        }
      } else if parts[1].split(separator: ",").contains("memory") {
        found += limits(of: parts[2], under: "/sys/fs/cgroup/memory", in: "memory.limit_in_bytes", read)
      }
    }
    return found
  }

  /// The limits of a group and of its ancestors. Inside a container the path may not be mounted; the container's own group is then
  /// the root.
  private static func limits(
    of path: Substring, under mount: String, in file: String, _ read: (String) -> String?
  ) -> [MachineMemory] {
    var names = path.split(separator: "/").filter { $0 != ".." }
    var found: [MachineMemory] = []
    while true {
      let group = names.map { "/\($0)" }.joined()
      if let text = read(mount + group + "/" + file), let bytes = number(text) {
        found.append(MachineMemory(bytes: bytes, source: .controlGroup(group.isEmpty ? "/" : group)))
      }
      if names.isEmpty { return found }
      names.removeLast()
    }
  }

  /// The number in a file; nil for `max`, which means no limit.
  private static func number(_ text: String) -> Int? {
    Int(text.prefix { !$0.isWhitespace })
  }
}

/// Reads small text files of the system.
enum SystemText {
  /// Bytes read at once: `/proc/meminfo` has about 1,500.
  private static let pageBytes = 4_096

  /// The text of a file; nil when it cannot be read.
  static func read(_ path: String) -> String? {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var page = [UInt8](repeating: 0, count: pageBytes)
    var bytes: [UInt8] = []
    while true {
      let count = unsafe Glibc.read(file, &page, page.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += page[..<count]
    }
  }
}
