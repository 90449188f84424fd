/// Packs frames of sound into packets: how many go together, and their times. Pure.
struct TuyaVoiceStream: Sendable {
  /// A packet's content.
  struct Part: Sendable, Hashable {
    var flag: TuyaStreamFlag
    /// Milliseconds since 1970 of its first frame.
    var time: UInt64
    /// Microseconds since the stream began.
    var position: UInt64
    var bytes: [UInt8]
  }

  private let voice: TuyaVoice
  /// A part of the stream was sent.
  private(set) var hasBegun = false
  private var start: UInt64 = 0
  private var frames: UInt64 = 0
  private var pending: [UInt8] = []
  private var pendingFrames = 0

  init(_ voice: TuyaVoice) { self.voice = voice }

  /// Adds a frame.
  /// - Parameter now: milliseconds since 1970.
  /// - Returns: a packet that is full, or nil.
  mutating func add(_ frame: [UInt8], at now: UInt64) -> Part? {
    if frames == 0 && pendingFrames == 0 { start = now }
    if pendingFrames == 0 && pending.isEmpty && voice.framesPerPacket == 1 {
      pending = frame
    } else {
      pending += frame
    }
    pendingFrames += 1
    return pendingFrames >= voice.framesPerPacket ? part(hasBegun ? .streaming : .start) : nil
  }

  /// The packet that ends the stream, with what was not sent yet; nil where nothing was, and there is nothing.
  /// - Parameter isCut: what was not sent is discarded.
  mutating func end(isCut: Bool) -> Part? {
    defer { self = TuyaVoiceStream(voice) }
    if isCut {
      pending = []
      pendingFrames = 0
    }
    guard hasBegun || !pending.isEmpty else { return nil }
    return part(hasBegun ? .end : .onlyOne)
  }

  private mutating func part(_ flag: TuyaStreamFlag) -> Part {
    let position = frames * UInt64(voice.frame)
    let part = Part(flag: flag, time: start + position, position: position * 1_000, bytes: pending)
    hasBegun = true
    frames += UInt64(pendingFrames)
    pending = []
    pendingFrames = 0
    return part
  }
}
