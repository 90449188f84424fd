internal import MillraceDoubles
internal import MillraceJSON

/// The format of a session's replies: the first of those that it asks for which the double has.
struct ReplyFormat: Sendable, Hashable {
  var format = SpeechFormat.mp3
  /// Hz.
  var rate = 16_000

  /// Rates of the encoders.
  private static let rates = [8_000, 12_000, 16_000, 24_000, 48_000]
  /// Milliseconds of an Opus frame of the double.
  static let frame = 20
  /// Bit/s of MP3.
  private static let bitRate = 48_000

  /// MP3 at 16 kHz, as a device gets it that asks for nothing.
  init() {}

  /// - Parameter attributes: `sessionAttributes`.
  /// - Throws: what is wrong with the formats.
  init(_ attributes: JSONValue?) throws(ReplyFormatProblem) {
    guard let wish = attributes?["tts.order.supports"] else { return }
    guard let list = wish.array, !list.isEmpty else {
      throw ReplyFormatProblem(text: "tts.order.supports is no list")
    }
    for entry in list {
      guard let word = entry["format"]?.string, let rate = Self.number(entry["sampleRate"]) else {
        throw ReplyFormatProblem(text: "an entry of tts.order.supports has no format or no sampleRate")
      }
      if let channels = Self.number(entry["channels"]), channels != 1 { continue }
      guard Self.rates.contains(rate), let format = Self.format(word, entry["container"]?.string ?? "", rate)
      else { continue }
      self.format = format
      self.rate = rate
      return
    }
    throw ReplyFormatProblem(text: "tts.order.supports has no format that the double can speak")
  }

  /// Some clients send numbers as texts.
  private static func number(_ value: JSONValue?) -> Int? {
    value?.integer ?? value?.string.flatMap { Int($0) }
  }

  private static func format(_ word: String, _ container: String, _ rate: Int) -> SpeechFormat? {
    switch (word.lowercased(), container.lowercased()) {
    case ("pcm", _): .pcm
    case ("mp3", _): rate == 12_000 ? nil : .mp3
    case ("opus", "ogg"): .oggOpus
    case ("opus", _): .opusPackets(hasHead: false)
    default: nil
    }
  }

  /// What the first packet of a reply says.
  /// - Parameters:
  ///   - isNumbered: the reply is PCM whatever was asked for.
  ///   - frameBytes: bytes of each Opus frame.
  func parameters(isNumbered: Bool, frameBytes: Int) -> StreamParameters {
    typealias Parameters = StreamParameters.AudioParameters
    if isNumbered { return .audio(Parameters(codec: Parameters.pcm, rate: rate)) }
    switch format {
    case .pcm: return .audio(Parameters(codec: Parameters.pcm, rate: rate))
    case .mp3: return .audio(Parameters(codec: Parameters.mp3, rate: rate, bitRate: Self.bitRate))
    case .oggOpus:
      return .audio(
        Parameters(codec: Parameters.opus, rate: rate, container: 1, bitRate: 32_000, frame: Self.frame))
    case .opusPackets:
      return .audio(
        Parameters(
          codec: Parameters.opus, rate: rate, bitRate: frameBytes * 8_000 / Self.frame, frame: Self.frame,
          frameBytes: frameBytes))
    }
  }
}

/// What is wrong with the formats that a session asks for.
struct ReplyFormatProblem: Error {
  let text: String
}
