internal import MillraceCore

/// How the inputs of a recording become the channels of its file.
struct RecordingLayout {
  /// One input's way into the file.
  struct Place {
    /// Channels of the input.
    var channels = 1
    var sample = SampleType.s16
    /// First channel of the file, and how many it goes to; one channel going to several goes to all alike.
    var first = 0
    var count = 1

    var frameBytes: Int { channels * sample.byteCount }
  }

  /// By input, linked or not.
  private(set) var places: [Place] = []
  /// Channels of the file.
  private(set) var channels = 0

  /// Lays out inputs, nil where nothing is linked. `mixes`: all on top of each other; otherwise one after the other.
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
