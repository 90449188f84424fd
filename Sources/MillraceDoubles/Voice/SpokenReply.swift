/// An audio format of replies.
public enum SpeechFormat: Sendable, Hashable {
  /// 16-bit little-endian PCM.
  case pcm
  /// MP3 at 48 kbit/s.
  case mp3
  /// Opus in Ogg at 32 kbit/s, one packet of 20 ms per page.
  case oggOpus
  /// Opus packets of 20 ms at 32 kbit/s, one per message; with or without an `OpusHead` as the first.
  case opusPackets(hasHead: Bool)
}

/// A spoken text, in one of the audio formats.
public struct SpokenReply: Sendable, Hashable {
  /// The audio: packets one by one, anything else in one piece.
  public var pieces: [[UInt8]]
  /// Its duration.
  public var milliseconds: Int
  /// The pieces are packets, which must not be divided.
  private var isInPackets: Bool

  /// Total size in bytes.
  public var bytes: Int { pieces.reduce(0) { $0 + $1.count } }

  /// Creates a reply from its audio.
  public init(pieces: [[UInt8]], milliseconds: Int, isInPackets: Bool = false) {
    self.pieces = pieces
    self.milliseconds = milliseconds
    self.isInPackets = isInPackets
  }

  /// Not speech, but PCM whose samples are the reply's number: 100 ms per word.
  public init(number: Int, words: Int, rate: Int) {
    let sample = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
    let count = words * rate / 10
    self.init(pieces: [(0..<count * 2).map { sample[$0 % 2] }], milliseconds: words * 100)
  }

  /// The messages to send: packets one by one, anything else cut every `chunk` bytes, whatever lies there.
  public func messages(chunk: Int) -> [[UInt8]] {
    guard !isInPackets else { return pieces }
    return pieces.flatMap { piece in
      stride(from: 0, to: piece.count, by: chunk).map { Array(piece[$0..<min($0 + chunk, piece.count)]) }
    }
  }
}

/// The messages of a reply that remain to be sent, and the pace at which they are due.
public struct ReplyMessages: Sendable {
  private var rest: ArraySlice<[UInt8]>
  private let middle: Int
  private let millisecondsPerByte: Double

  /// - Parameters:
  ///   - messages: what to send.
  ///   - milliseconds: the duration of the audio.
  ///   - speed: how much faster than real time it is sent.
  public init(_ messages: [[UInt8]], milliseconds: Int, speed: Double) {
    rest = messages[...]
    middle = messages.count / 2
    let bytes = messages.reduce(0) { $0 + $1.count }
    millisecondsPerByte = bytes > 0 ? Double(milliseconds) / speed / Double(bytes) : 0
  }

  /// The number of messages left.
  public var count: Int { rest.count }

  /// True when as many messages are left as make up half of them.
  public var isHalfway: Bool { rest.count == middle }

  /// The next message and the pause after it in milliseconds; nil: all were sent.
  public mutating func next() -> (message: [UInt8], pause: Int)? {
    guard let message = rest.popFirst() else { return nil }
    return (message, Int(Double(message.count) * millisecondsPerByte))
  }
}
