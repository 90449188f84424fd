internal import Glibc
internal import NIOSSL
internal import Synchronization

/// Settings of TLS that are made once and used for every connection: reading the system's authorities costs milliseconds and megabytes.
///
/// A file that has changed is read again, and everything after an hour: a certificate that was renewed, or an authority that was taken
/// off the list, counts without a restart. Any thread.
final class TLSContexts: Sendable {
  /// What a context was made of.
  struct Key: Hashable {
    var trust: NetTrust?
    var identity: NetIdentity?
    /// What the system says of each file.
    var stamps: [Stamp] = []
  }

  /// A file that was replaced or written has another one.
  struct Stamp: Hashable {
    var device: UInt64 = 0
    var number: UInt64 = 0
    var size: Int64 = 0
    var changed: [Int] = []

    /// Of a file that is not there it is empty.
    init(of path: String) {
      var info = stat()
      guard unsafe stat(path, &info) == 0 else { return }
      device = UInt64(info.st_dev)
      number = UInt64(info.st_ino)
      size = Int64(info.st_size)
      changed = [info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec]
    }
  }

  /// A context and, of a server, its certificate.
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

  /// A process has few services and fewer certificates; one with more makes some of them again.
  private static let most = 16
  private static let age = Duration.seconds(3_600)

  /// The latest used is the last.
  private let entries = Mutex<[Entry]>([])

  /// The context of a key, made when there is none yet.
  func find(_ key: Key, make: () throws(NetProblem) -> Made) throws(NetProblem) -> Made {
    let now = ContinuousClock.now
    let known = entries.withLock { entries -> Made? in
      entries.removeAll { now - $0.time > Self.age }
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
      entries.append(entries.remove(at: index))
      return entries.last?.made
    }
    if let known { return known }
    // Not under the lock: two that come at the same moment make two, and one of them is kept.
    let made = try make()
    entries.withLock { entries in
      entries.removeAll { $0.key == key }
      entries.append(Entry(key: key, made: made, time: now))
      if entries.count > Self.most { entries.removeFirst() }
    }
    return made
  }
}
