internal import Glibc
internal import NIOConcurrencyHelpers
internal import NIOSSL

/// A cache of TLS contexts: reading the system's certificate authorities costs milliseconds and megabytes.
///
/// A changed file is read again, and everything after an hour: a renewed certificate or a revoked authority takes effect without a
/// restart. Any thread.
final class TLSContexts: Sendable {
  /// What a context was created from.
  struct Key: Hashable {
    var trust: NetTrust?
    var identity: NetIdentity?
    /// The identity of each file.
    var stamps: [Stamp] = []
  }

  /// Changes when the file is replaced or written.
  struct Stamp: Hashable {
    var device: UInt64 = 0
    var number: UInt64 = 0
    var size: Int64 = 0
    var changed: [Int] = []

    /// Empty for a missing file.
    init(of path: String) {
      var info = stat()
      guard unsafe stat(path, &info) == 0 else { return }
      device = UInt64(info.st_dev)
      number = UInt64(info.st_ino)
      size = Int64(info.st_size)
      changed = [info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec]
    }
  }

  /// A context and, for a server, its certificate.
  struct Made: Sendable {
    var context: NIOSSLContext
    var certificate: NIOSSLCertificate?
  }

  private struct Entry {
    var key: Key
    var made: Made
    var time: ContinuousClock.Instant
  }

  static let shared = TLSContexts()

  /// A process has few services and fewer certificates; with more, some contexts are created again.
  private static let most = 16
  private static let age = Duration.seconds(3_600)

  /// Ordered by last use, the latest last.
  private let entries = NIOLockedValueBox<[Entry]>([])

  /// The context for a key; created when it is missing.
  func find(_ key: Key, make: () throws(NetError) -> Made) throws(NetError) -> Made {
    let now = ContinuousClock.now
    let known = entries.withLockedValue { entries -> Made? in
      entries.removeAll { now - $0.time > Self.age }
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
      entries.append(entries.remove(at: index))
      return entries.last?.made
    }
    if let known { return known }
    // Not under the lock, under which nobody else would find a context for as long as it takes to read the authorities: callers at the
    // same moment make several, and all are given the first.
    let made = try make()
    return entries.withLockedValue { entries in
      if let first = entries.first(where: { $0.key == key }) { return first.made }
      entries.append(Entry(key: key, made: made, time: now))
      if entries.count > Self.most { entries.removeFirst() }
      return made
    }
  }
}
