internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// Sends the user's audio: keeps it while it must not be sent or the network is congested, and packs Opus into Ogg where required. On the
/// network thread.
final class AudioUplink {
  /// How the user's audio is sent.
  struct Settings: Sendable {
    var isOpus: Bool
    /// Opus packets are sent in Ogg pages.
    var isOgg = false
    /// Bytes of one frame of silence; 0: no silence is sent.
    var silentBytes: Int
    /// Duration of a frame.
    var frame: Nanoseconds
    var preRoll: Nanoseconds
    var rate: Int
  }

  /// Messages wait in the socket, too; a backlog this small is never congestion.
  private static let minBacklog = 8_192

  private let settings: Settings
  private var preRoll: PreRoll
  /// The current Ogg stream.
  private var pages: OggPages?
  /// The backlog limit of the socket: one second of audio.
  private var latestSecond: RecentSizes

  init(_ settings: Settings) {
    self.settings = settings
    latestSecond = RecentSizes(count: max(1, Int(1_000_000_000 / max(1, settings.frame))))
    // Sized for 16-bit mono, or for packets of 10 ms.
    preRoll = PreRoll(
      bytes: Int(settings.preRoll / 1_000_000) * settings.rate / 500 + 1,
      packets: Int(settings.preRoll / 10_000_000) + 1, longest: settings.preRoll)
  }

  /// Starts a new Ogg stream, where audio is sent in Ogg.
  func beginStream() {
    guard settings.isOgg else { return }
    pages = OggPages(rate: settings.rate, milliseconds: Int(settings.frame / 1_000_000))
  }

  /// Speech has ended. Everything kept is sent, however congested the network is: a sentence without its end is worse than a late one.
  /// - Returns: the duration of audio that was discarded because it exceeded the pre-roll.
  func endStream(isMuted: Bool, to socket: WebSocket?) -> Nanoseconds {
    while let frame = popKept() { upload(isMuted ? silence(like: frame) : frame, to: socket) }
    let lost = preRoll.lost
    preRoll.clear()
    if let last = pages?.end(), !last.isEmpty { _ = socket?.send(last, isText: false) }
    return lost
  }

  /// Handles a frame from the microphone.
  /// - Returns: the duration of audio that was discarded, as in `flush`.
  func take(_ frame: [UInt8], _ time: Nanoseconds, as uplink: BailianUplink, to socket: WebSocket?)
    -> Nanoseconds
  {
    switch uplink {
    case .drop: return 0
    case .keep:
      preRoll.push(frame.span, duration: time)
      return 0
    case .send, .silence:
      // What was kept is older.
      let lost = flush(as: uplink, to: socket)
      let frame = uplink == .silence ? silence(like: frame) : frame
      if preRoll.isEmpty && !isCongested(socket) {
        upload(frame, to: socket)
      } else {
        preRoll.push(frame.span, duration: time)
      }
      return lost
    }
  }

  /// Sends what was kept, or discards it, as the session requires.
  /// - Returns: the duration of audio that was discarded because it exceeded the pre-roll; reported once everything kept was sent.
  func flush(as uplink: BailianUplink, to socket: WebSocket?) -> Nanoseconds {
    guard !preRoll.isEmpty || preRoll.lost > 0 else { return 0 }
    switch uplink {
    case .keep: return 0
    case .drop:
      preRoll.clear()
      return 0
    case .silence, .send:
      while !isCongested(socket), let frame = popKept() {
        upload(uplink == .silence ? silence(like: frame) : frame, to: socket)
      }
      guard preRoll.isEmpty else { return 0 }
      let lost = preRoll.lost
      preRoll.clear()
      return lost
    }
  }

  /// Sends a frame of silence in place of a microphone that has ended.
  func sendSilence(to socket: WebSocket?) {
    _ = socket?.send([UInt8](repeating: 0, count: settings.silentBytes), isText: false)
  }

  private func upload(_ frame: [UInt8], to socket: WebSocket?) {
    latestSecond.add(frame.count)
    let bytes = pages != nil ? pages?.add(frame) ?? [] : frame
    if !bytes.isEmpty { _ = socket?.send(bytes, isText: false) }
  }

  /// True when the network is slower than speech. What the user says now matters more than what was said seconds ago, which would arrive
  /// later and later: from here on the latest audio is kept, and the oldest discarded.
  private func isCongested(_ socket: WebSocket?) -> Bool {
    (socket?.backlog ?? 0) > max(Self.minBacklog, latestSecond.bytes)
  }

  private func popKept() -> [UInt8]? {
    var frame: [UInt8] = []
    let isThere = preRoll.pop { bytes in for index in bytes.indices { frame.append(bytes[index]) } }
    return isThere ? frame : nil
  }

  /// Silence as long as a frame.
  private func silence(like bytes: [UInt8]) -> [UInt8] {
    guard settings.isOpus, let head = bytes.first else { return [UInt8](repeating: 0, count: bytes.count) }
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
