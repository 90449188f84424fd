internal import MillraceCore

/// Resolves the formats of `process.pipe` before the program starts.
enum ProcessShape {
  /// Packet length when neither the parameters nor the input give one: the frame of most speech codecs.
  private static let usualFrame: Nanoseconds = 20_000_000

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.strings("command").first == "" {
      resolution.refuse("command", "the program has no name", cure: "give its name or its path first")
    }
    for name in ["command", "environment"]
    where parameters.strings(name).contains(where: { $0.utf8.contains(0) }) {
      resolution.refuse(
        name, "it contains a NUL character, which cannot be passed to a program", cure: "remove it")
    }
    if parameters.strings("environment").contains(where: { !$0.dropFirst().contains("=") }) {
      // Not quoted: it may be a secret whose name was left out.
      resolution.refuse(
        "environment", "an item is not an assignment", cure: "write \"NAME=value\"")
    }
    // Without a linked pipe, a program sets no pace; with one, it can be made to wait on both sides.
    resolution.pacing = .waits
    guard resolution.wanted["out"] != nil else { return }
    if parameters.string("mode") == "lines" {
      resolution.outputs["out"] = lines(resolution)
    } else if let shape = sound(&resolution) {
      resolution.outputs["out"] = shape
    }
  }

  /// Text or events: what the consumers take; if they take both, what comes in.
  private static func lines(_ resolution: Resolution) -> OutputShape {
    var formats: [Format] = [.text, .event]
    if resolution.input?.format == .event { formats.reverse() }
    let format = formats.first { resolution.isWanted($0) } ?? formats[0]
    return OutputShape(format, packetDuration: nil, packetBytes: OutputReader.longestLine)
  }

  private static func sound(_ resolution: inout Resolution) -> OutputShape? {
    let parameters = resolution.parameters
    let input = resolution.input
    let rate = parameters.has("rate") ? parameters.integer("rate") : input?.format.rate
    let channels = parameters.has("channels") ? parameters.integer("channels") : input?.format.channels
    guard let rate, let channels else {
      // In a cycle the input is not known yet; resolution asks again.
      guard !resolution.linkedInputs.contains("in") || input != nil else { return nil }
      resolution.refuse(
        rate == nil ? "rate" : "channels",
        "the \(rate == nil ? "rate" : "channels") of the audio the program writes is unknown",
        cure: "set \"rate\" and \"channels\", or set \"mode\" to \"lines\" if it writes text")
      return nil
    }
    var frame = input?.packetDuration ?? usualFrame
    if parameters.has("frame") { frame = Nanoseconds(parameters.number("frame") * 1e6) }
    let frames = max(1, Int((Double(frame) * Double(rate) / 1e9).rounded()))
    return .pcm(rate: rate, channels: channels, sample: .s16, frames: frames)
  }
}
