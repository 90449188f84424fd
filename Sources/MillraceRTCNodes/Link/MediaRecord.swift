internal import MillraceCore
internal import MillraceRTCSound

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
  /// In `dataUp`: an event of another node as JSON, for the other side.
  static let toldEvent: UInt8 = 9
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
  /// In `sound`: nobody says whose sound is whose, so that any of the session counts.
  static let anySound = UInt8.max
  /// In `sound`: the participant is not heard.
  static let noSound = UInt8.max - 1

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
  /// Which of the session's received media of its kind it came in, from 0.
  var medium: UInt8 = 0
  /// In which of the session's received media of sound its participant is heard, as in `SoundDownHead`.
  var sound: UInt8 = PictureDownHead.anySound
}
