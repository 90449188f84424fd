internal import MillraceCore

/// Checks a recording against what its file format supports, before the graph starts and when a path is set while it runs.
enum RecordingCheck {
  /// What a file has to hold.
  struct Content {
    /// Of the linked inputs.
    var formats: [Format]
    var mixes: Bool
    var hasBitrate: Bool
    var hasSample: Bool

    init(_ formats: [Format], _ values: ParameterValues) {
      self.formats = formats
      mixes = values.string("layout") == "mix"
      hasBitrate = values.has("bitrate")
      hasSample = values.has("sample")
    }
  }

  /// The problem of a path without a known extension.
  static func unknownExtension(_ path: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" has no known audio file extension", parameter: "path",
      cure: "use .wav, .flac, .opus, .aac or .m4a, or set \"format\"")
  }

  /// What the format does not support.
  static func problems(_ format: RecordingFormat, _ content: Content) -> [NodeProblem] {
    var problems: [NodeProblem] = []
    if content.hasBitrate, !format.isLossy {
      problems.append(
        NodeProblem(
          "\(format.name) is lossless and has no bit rate", parameter: "bitrate", cure: "remove it"))
    }
    if content.hasSample, format != .wav {
      problems.append(
        NodeProblem(
          "\(format.name) has no choice of sample types, only WAV has", parameter: "sample",
          cure: "remove it"))
    }
    let layout = RecordingLayout(content.formats, mixes: content.mixes)
    if layout.channels > format.mostChannels {
      problems.append(
        NodeProblem(
          "the file would have \(layout.channels) channels; \(format.name) supports \(format.mostChannels)",
          cure: "put audio.convert (channels 1) before stereo inputs, or set \"layout\" to \"mix\""))
    }
    if let rate = content.formats.first?.rate, let rates = format.rates, !rates.contains(rate) {
      let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
      problems.append(
        NodeProblem(
          "\(format.name) does not support \(rate) Hz",
          cure: "put audio.resample (rate \(nearest)) before each input"))
    }
    return problems
  }
}
