internal import MillraceCore

/// Maps the inputs of a recording to the channels of its file.
struct RecordingLayout {
  /// Where one input goes.
  struct Place {
    /// Channels of the input.
    var channels = 1
    var sample = SampleType.s16
    /// First channel in the file, and number of channels; a mono input is copied to all of them.
    var first = 0
    var count = 1

    var frameBytes: Int { channels * sample.byteCount }
  }

  /// By input, linked or not.
  private(set) var places: [Place] = []
  /// Channels of the file.
  private(set) var channels = 0

  /// Lays out the inputs, nil where nothing is linked. `mixes`: all on the same channels; otherwise side by side.
  init(_ formats: [Format?], mixes: Bool) {
    let widest = formats.lazy.compactMap { $0?.channels }.max() ?? 1
    for format in formats {
      guard case .pcm(_, let count, let sample)? = format else {
        places.append(Place())
        continue
      }
      places.append(
        Place(channels: count, sample: sample, first: mixes ? 0 : channels, count: mixes ? widest : count))
      channels = mixes ? widest : channels + count
    }
  }
}
