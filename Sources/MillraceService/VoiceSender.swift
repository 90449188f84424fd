public import MillraceCore
public import MillraceDialog

/// How a service takes the user's audio.
public struct VoiceFormat: Sendable, Hashable {
  /// Sample rate in Hz.
  public var rate: Int
  /// Duration of a frame.
  public var frame: Nanoseconds
  /// True: a frame is an Opus packet; false: 16-bit mono PCM.
  public var isOpus: Bool
  /// Sends silence when the user's audio has ended, in real time: the service would wait otherwise. Only for PCM.
  public var sendsSilenceAfterEnd = true
  /// How much is kept while it must not be sent, or while the network is slower than speech.
  public var preRoll: Nanoseconds
  /// True: the audio is a bot's reply that drives the service. It may come faster than real time, and waits in the graph; nothing of it is
  /// discarded, and its utterances end. False: the user's, of which the latest counts.
  public var isReply = false
  /// When a frame may be sent at the earliest; nil: at once.
  public var pace: Pacer?

  /// Creates a format of frames.
  public init(rate: Int, frame: Nanoseconds, isOpus: Bool, preRoll: Nanoseconds) {
    self.rate = rate
    self.frame = frame
    self.isOpus = isOpus
    self.preRoll = preRoll
  }

  /// Bytes of a PCM frame.
  var frameBytes: Int { max(2, Int(frame * Nanoseconds(rate) / 1_000_000_000) * 2) }
}

/// Packs frames of the user's audio for a wire, such as Opus packets into Ogg pages. A stream is what is said between two boundaries.
public protocol VoicePacking: Sendable {
  /// Begins a stream.
  mutating func begin()
  /// The bytes to send for a frame; empty: nothing yet.
  mutating func add(_ frame: [UInt8]) -> [UInt8]
  /// The bytes that end the stream; empty: none.
  mutating func end() -> [UInt8]
}

/// Sends the user's audio over a wire: keeps it while it must not be sent or the network is congested, and holds back what comes faster
/// than real time. On the event loop of the session.
final class VoiceSender {
  /// Messages wait in the socket, too; a backlog this small is never congestion.
  private static let minBacklog = 8_192

  private let format: VoiceFormat
  private var packing: (any VoicePacking)?
  private var preRoll: PreRoll
  private var pace: Pacer?
  /// Frames that are kept and belong to a stream that ends, because their pace does not allow them to be sent yet.
  private var ending = 0
  /// A frame was sent since the stream began.
  private(set) var hasBegun = false
  /// The backlog limit of the wire: one second of audio.
  private var latestSecond: RecentSizes

  init(_ format: VoiceFormat, packing: (any VoicePacking)?) {
    self.format = format
    self.packing = packing
    pace = format.pace
    latestSecond = RecentSizes(count: max(1, Int(1_000_000_000 / max(1, format.frame))))
    // With a pace, a frame that is early by microseconds has to wait, and the next one may come meanwhile.
    let longest = max(format.preRoll, format.pace == nil ? 0 : 2 * format.frame)
    // Sized for 16-bit mono, or for packets of 10 ms.
    preRoll = PreRoll(
      bytes: Int(longest / 1_000_000) * format.rate / 500 + 1,
      packets: Int(longest / 10_000_000) + 1, longest: longest)
  }

  /// When the next frame may be sent: `now` or later. While the network is slower, it is asked again a frame later.
  func due(at now: Nanoseconds, over wire: (any ServiceWire)?) -> Nanoseconds {
    isCongested(wire) ? now &+ format.frame : pace?.due(at: now) ?? now
  }

  /// Begins a stream, also over a new connection.
  func beginStream() {
    ending = 0
    hasBegun = false
    packing?.begin()
    pace?.begin()
  }

  /// The stream is cut off: what was kept of it is discarded.
  func cutStream() {
    preRoll.clear()
    _ = packing?.end()
    beginStream()
  }

  /// The user has spoken, and frames are kept that their pace does not allow yet: `flushEnd` sends them. False where none are.
  func holdsEnd() -> Bool {
    guard pace != nil, !format.isReply, hasKept else { return false }
    ending = preRoll.count
    return true
  }

  /// Sends what is due of the frames that `holdsEnd` found. True when all were sent, and the stream may end.
  func flushEnd(at now: Nanoseconds, isMuted: Bool, to wire: (any ServiceWire)?) -> Bool {
    while ending > 0, mayBeSent(at: now, over: wire), let frame = popKept() {
      ending -= 1
      pace?.noteSent(at: now)
      upload(isMuted ? silence(like: frame) : frame, to: wire)
    }
    guard ending == 0 else { return false }
    beginStream()
    return true
  }

  /// The user has spoken. Everything kept is sent, however congested the network is: a sentence without its end is worse than a late one.
  /// - Returns: the duration of audio that was discarded because it exceeded the pre-roll.
  func endStream(isMuted: Bool, to wire: (any ServiceWire)?) -> Nanoseconds {
    while let frame = popKept() { upload(isMuted ? silence(like: frame) : frame, to: wire) }
    let lost = preRoll.lost
    preRoll.clear()
    if let last = packing?.end(), !last.isEmpty { _ = wire?.send(voice: last) }
    pace?.begin()
    hasBegun = false
    return lost
  }

  /// Handles a frame of the user's audio.
  /// - Returns: the duration of audio that was discarded, as in `flush`.
  func take(
    _ frame: [UInt8], _ time: Nanoseconds, at now: Nanoseconds, as uplink: VoiceUplink,
    to wire: (any ServiceWire)?
  ) -> Nanoseconds {
    switch uplink {
    case .drop: return 0
    case _ where uplink == .keep || ending > 0:
      let before = preRoll.count
      preRoll.push(frame.span, duration: time)
      // The oldest were discarded.
      ending = max(0, ending - (before + 1 - preRoll.count))
      return 0
    case .keep, .send, .silence:
      // What was kept is older.
      let lost = flush(at: now, as: uplink, to: wire)
      let frame = uplink == .silence ? silence(like: frame) : frame
      // Frames of a reply arrive only when they are due.
      if preRoll.isEmpty && (format.isReply || mayBeSent(at: now, over: wire)) {
        pace?.noteSent(at: now)
        upload(frame, to: wire)
      } else {
        preRoll.push(frame.span, duration: time)
      }
      return lost
    }
  }

  /// Sends what was kept, or discards it, as the session requires.
  /// - Returns: the duration of audio that was discarded because it exceeded the pre-roll; reported once everything kept was sent.
  func flush(at now: Nanoseconds, as uplink: VoiceUplink, to wire: (any ServiceWire)?) -> Nanoseconds {
    guard ending == 0, !preRoll.isEmpty || preRoll.lost > 0 else { return 0 }
    switch uplink {
    case .keep: return 0
    case .drop:
      preRoll.clear()
      return 0
    case .silence, .send:
      while mayBeSent(at: now, over: wire), let frame = popKept() {
        pace?.noteSent(at: now)
        upload(uplink == .silence ? silence(like: frame) : frame, to: wire)
      }
      guard preRoll.isEmpty else { return 0 }
      let lost = preRoll.lost
      preRoll.clear()
      return lost
    }
  }

  /// Sends a frame of silence in place of a microphone that has ended.
  func sendSilence(to wire: (any ServiceWire)?) {
    _ = wire?.send(voice: [UInt8](repeating: 0, count: format.frameBytes))
  }

  private func upload(_ frame: [UInt8], to wire: (any ServiceWire)?) {
    hasBegun = true
    latestSecond.add(frame.count)
    let bytes = packing?.add(frame) ?? frame
    if !bytes.isEmpty { _ = wire?.send(voice: bytes) }
  }

  /// True when the network is slower than speech. What the user says now matters more than what was said seconds ago, which would arrive
  /// later and later: from here on the latest audio is kept, and the oldest discarded.
  private func isCongested(_ wire: (any ServiceWire)?) -> Bool {
    (wire?.backlog ?? 0) > max(Self.minBacklog, latestSecond.bytes)
  }

  private func mayBeSent(at now: Nanoseconds, over wire: (any ServiceWire)?) -> Bool {
    !isCongested(wire) && (pace?.due(at: now) ?? now) <= now
  }

  /// True when frames wait that will be sent when they are due.
  var hasKept: Bool { !preRoll.isEmpty }

  private func popKept() -> [UInt8]? {
    var frame: [UInt8] = []
    let isThere = preRoll.pop { bytes in for index in bytes.indices { frame.append(bytes[index]) } }
    return isThere ? frame : nil
  }

  /// Silence as long as a frame.
  private func silence(like bytes: [UInt8]) -> [UInt8] {
    guard format.isOpus, let head = bytes.first else { return [UInt8](repeating: 0, count: bytes.count) }
    // RFC 6716 section 3.2: the same number of empty frames, which a decoder conceals.
    switch head & 3 {
    case 2: return [head, 0]
    case 3: return [head, (bytes.dropFirst().first ?? 1) & 0x3F]
    default: return [head]
    }
  }
}

/// The total size of the latest frames: the bytes of a stretch of encoded audio.
private struct RecentSizes {
  private var sizes: [Int]
  private var next = 0
  private(set) var bytes = 0

  init(count: Int) { sizes = Array(repeating: 0, count: count) }

  /// Replaces the oldest size.
  mutating func add(_ size: Int) {
    bytes += size - sizes[next]
    sizes[next] = size
    next = (next + 1) % sizes.count
  }
}
