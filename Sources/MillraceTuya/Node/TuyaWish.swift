internal import MillraceCore
internal import MillraceService

/// The forms of replies that a session asks for, in order of wish.
enum TuyaWish {
  /// Bit rates in kbit/s where none is given. Source: what the vendor's app and its devices ask for.
  private static let bitRates = ["mp3": 32, "opus": 16]
  /// Sample rates of Opus, RFC 6716 section 2.1.3.
  private static let opusRates: Set = [8_000, 12_000, 16_000, 24_000, 48_000]

  /// The list of `wishes`, or the form that `reply`, `rate` and `replyBitrate` name.
  static func list(_ values: ParameterValues) throws(NodeProblem) -> [TuyaReplyFormat] {
    let (format, rate) = (values.string("reply"), values.integer("rate"))
    if format == "opus" && !opusRates.contains(rate) {
      throw NodeProblem(
        "Opus has no sample rate of \(rate) Hz", parameter: "rate",
        cure: "use 8000, 12000, 16000, 24000 or 48000")
    }
    let bitRate = values.has("replyBitrate") ? values.integer("replyBitrate") : nil
    let texts = values.strings("wishes")
    guard !texts.isEmpty else { return [form(format, rate, bitRate)] }
    var forms: [TuyaReplyFormat] = []
    for text in texts {
      let wish = try wish(text, format, rate, bitRate)
      // The output has one format; MP3 says its rate in each frame.
      guard wish.format == format, format == "mp3" || wish.sampleRate == rate else {
        throw NodeProblem(
          "the output \"audio\" has another format than a wish", parameter: "wishes",
          cure: "give all wishes the format of \"reply\", and, unless it is mp3, its \"rate\"")
      }
      forms.append(wish)
    }
    return forms
  }

  /// `mp3/24000/64`: format, rate in Hz, bit rate in kbit/s; what is left out is that of the other parameters.
  private static func wish(
    _ text: String, _ format: String, _ rate: Int, _ bitRate: Int?
  ) throws(NodeProblem) -> TuyaReplyFormat {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let numbers = parts.dropFirst().map { Int($0) ?? 0 }
    guard let first = parts.first, ["mp3", "pcm", "opus"].contains(first), numbers.count <= 2,
      numbers.allSatisfy({ $0 > 0 })
    else {
      throw NodeProblem(
        "a wish is not of the form format/Hz/kbit/s", parameter: "wishes",
        cure: "write, for example, \"mp3/16000/32\"")
    }
    return form(String(first), numbers.first ?? rate, numbers.count > 1 ? numbers[1] : bitRate)
  }

  private static func form(_ format: String, _ rate: Int, _ bitRate: Int?) -> TuyaReplyFormat {
    TuyaReplyFormat(
      format, sampleRate: rate, bitDepth: 16, bitRate: (bitRate ?? bitRates[format]).map { $0 * 1_000 })
  }
}
