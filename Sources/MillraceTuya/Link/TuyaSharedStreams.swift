/// Which session's data goes over a number that several sessions share, so that one microphone is sent once. Pure.
///
/// The first session that has a stream open leads; what the others send meanwhile is swallowed. When the leader's stream ends, the next
/// that sends takes over. It may be behind the leader by some frames: those are recognised by their content and their order, and swallowed
/// too. Frames that are all the same, such as digital silence, do not show how far it is behind: no more are swallowed than were remembered.
public struct TuyaSharedStreams: Sendable {
  private struct Stream: Sendable {
    var leader: Int?
    /// Frames that were sent last.
    var latest: [Int] = []
    /// Sessions that follow, and where in `latest` the next frame of each may be; nil: anywhere.
    var followers: [Int: [Int]?] = [:]
  }

  /// How many frames are remembered: one to three seconds.
  private static let remembered = 50

  private var streams: [UInt16: Stream] = [:]

  /// Creates an empty set.
  public init() {}

  /// True for a number that is reserved for sharing.
  public static func isShared(_ id: UInt16) -> Bool { TuyaChannelPool.isReserved(id) }

  /// True when a frame of a session has to be sent. The session leads from then on.
  public mutating func takes(_ frame: [UInt8], of session: Int, on id: UInt16) -> Bool {
    var stream = streams[id] ?? Stream()
    defer { streams[id] = stream }
    if let leader = stream.leader, leader != session {
      stream.followers.updateValue(nil, forKey: session)
      return false
    }
    let hash = frame.hashValue
    if let known = stream.followers[session] {
      let places = (known ?? Array(stream.latest.indices)).filter {
        $0 < stream.latest.count && stream.latest[$0] == hash
      }
      if !places.isEmpty {
        stream.followers.updateValue(places.map { $0 + 1 }, forKey: session)
        return false
      }
      stream.followers.removeValue(forKey: session)
    }
    stream.leader = session
    stream.latest.append(hash)
    if stream.latest.count > Self.remembered { stream.latest.removeFirst() }
    return true
  }

  /// A picture or a text that was sent.
  private struct Message: Sendable {
    var hash: Int
    var id: UInt16
    var session: Int
    var time: UInt64
  }

  /// How long a picture or a text is remembered, in milliseconds.
  private static let memory: UInt64 = 1_000

  private var messages: [Message] = []

  /// True for a picture or a text that another session has just sent for all.
  /// - Parameter now: milliseconds.
  public mutating func repeats(_ bytes: [UInt8], of session: Int, on id: UInt16, at now: UInt64) -> Bool {
    guard Self.isShared(id) else { return false }
    messages.removeAll { $0.time + Self.memory <= now }
    let hash = bytes.hashValue
    if messages.contains(where: { $0.hash == hash && $0.id == id && $0.session != session }) { return true }
    messages.append(Message(hash: hash, id: id, session: session, time: now))
    return false
  }

  /// The session whose stream is the one that is sent; nil: none.
  public func leader(on id: UInt16) -> Int? { streams[id]?.leader }

  /// The stream of a session has ended.
  /// - Returns: true when it was the one that is sent.
  public mutating func end(_ session: Int, on id: UInt16) -> Bool {
    guard var stream = streams[id] else { return false }
    let led = stream.leader == session
    if led { stream.leader = nil }
    stream.followers.removeValue(forKey: session)
    // Places count from the frames that are the latest now.
    if led { stream.followers = stream.followers.mapValues { _ in nil } }
    // A whole stream of a follower may come behind the leader's: it is not new while nothing of it is.
    if led && stream.followers.isEmpty { stream.latest = [] }
    streams[id] = stream
    return led
  }

  /// The session has gone.
  /// - Returns: the numbers on which its stream was the one that is sent.
  public mutating func leave(_ session: Int) -> [UInt16] {
    streams.keys.sorted().filter { end(session, on: $0) }
  }
}
