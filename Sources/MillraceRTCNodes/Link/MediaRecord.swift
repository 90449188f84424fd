internal import MillraceCore

/// A codec of sound as it goes between a node and the thread of its sessions.
struct SoundCodec: Hashable, Sendable {
  enum Kind: UInt8, Sendable { case opus = 1, pcmu, pcma, l16, telephone }

  var kind: Kind
  /// Timestamps a second.
  var clockRate: Int
  var channels: Int

  static let opus = SoundCodec(kind: .opus, clockRate: 48_000, channels: 2)

  /// In 8 bytes, as an atomic and in records.
  var packed: UInt64 { UInt64(kind.rawValue) | UInt64(channels & 0xFF) << 8 | UInt64(clockRate) << 16 }

  init(kind: Kind, clockRate: Int, channels: Int) {
    self.kind = kind
    self.clockRate = clockRate
    self.channels = channels
  }

  /// Nil for 0: not known yet.
  init?(packed: UInt64) {
    guard let kind = Kind(rawValue: UInt8(truncatingIfNeeded: packed)) else { return nil }
    self.init(
      kind: kind, clockRate: Int(packed >> 16 & 0xFFFF_FFFF), channels: Int(packed >> 8 & 0xFF))
  }
}

/// The kinds of records between a node and the thread of its sessions. Heads are fixed, in the machine's byte order; the payload follows.
enum MediaRecord {
  /// In `soundUp` and `soundDown`: a packet of sound.
  static let sound: UInt8 = 1
  /// In `soundDown`: a source has ended; the head alone.
  static let soundEnd: UInt8 = 2
  /// In `pictureUp` and `pictureDown`: an encoded picture.
  static let picture: UInt8 = 3
  /// In `pictureDown`: a source has ended; the head alone.
  static let pictureEnd: UInt8 = 4
  /// In `dataUp` and `dataDown`.
  static let binary: UInt8 = 5
  static let text: UInt8 = 6
  /// In `events`: see `EventRecord` of MillraceService.
  static let event: UInt8 = 7
  /// In `commands`: a command as JSON.
  static let command: UInt8 = 8
}

/// The head of a packet of sound to send.
struct SoundUpHead: MediaHead {
  static let byteCount = 24
  /// `SoundCodec.packed` of the payload.
  var codec: UInt64
  /// Samples per channel of the payload, by the codec's clock.
  var duration: UInt32
  /// Samples that were not sent before it: a pause of the voice.
  var pause: UInt32
  /// Level in dB below full scale, 0 to 127; 255: not measured.
  var level: UInt8
  /// Somebody speaks.
  var isVoice: Bool
}

/// The head of a packet of sound that has come.
struct SoundDownHead: MediaHead {
  static let byteCount = 56
  /// The source: unique among all sessions of the node while it is heard.
  var source: UInt64
  /// The number of the packet, counted on beyond 16 bits.
  var sequence: Int64
  /// By the clock of its codec, counted on beyond 32 bits.
  var timestamp: Int64
  /// When it arrived, on the monotonic clock.
  var arrival: Nanoseconds
  /// When it was captured, by the sender's wall clock in nanoseconds since 1900; 0: not known.
  var capture: Int64
  var codec: UInt64
  /// In dB below full scale, 0 to 127; 255: its sender says none.
  var level: UInt8
  /// It begins after a silence.
  var marker: Bool
  /// The source has begun again: what comes is not compared with what came.
  var restarts: Bool
}

/// The head of an encoded picture to send.
struct PictureUpHead: MediaHead {
  static let byteCount = 16
  /// When it was captured, on the graph's clock.
  var timestamp: Nanoseconds
  var isKey: Bool
  /// `PictureCodec.rawValue`.
  var codec: UInt8
}

/// A codec of encoded pictures.
enum PictureCodec: UInt8, Sendable { case h264 = 1, vp8 = 2 }

/// The head of an encoded picture that has come.
struct PictureDownHead: MediaHead {
  static let byteCount = 40
  var source: UInt64
  /// When it was complete, on the monotonic clock.
  var arrival: Nanoseconds
  /// By the clock of 90 kHz, counted on beyond 32 bits.
  var timestamp: Int64
  /// When it was captured, by the sender's wall clock in nanoseconds since 1900; 0: not known.
  var capture: Int64
  var codec: UInt8
  var isKey: Bool
  /// A part is missing.
  var isDamaged: Bool
  /// Something before it is missing.
  var followsLoss: Bool
}

/// The head of a record: plain values.
protocol MediaHead: BitwiseCopyable {}

extension MediaHead {
  /// Copies a head to the beginning of a record.
  func store(to bytes: UnsafeMutablePointer<UInt8>) {
    unsafe UnsafeMutableRawPointer(bytes).storeBytes(of: self, as: Self.self)
  }

  /// Reads a head from the beginning of a record, which holds at least its size.
  static func load(_ bytes: UnsafeBufferPointer<UInt8>) -> Self? {
    guard bytes.count >= MemoryLayout<Self>.size else { return nil }
    return unsafe UnsafeRawBufferPointer(bytes).loadUnaligned(as: Self.self)
  }
}
