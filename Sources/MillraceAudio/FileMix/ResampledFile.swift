internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

/// Reads an audio file at another rate and channel count, from its first sample to its last.
@safe
final class ResampledFile {
  private let path: String
  private let source: AudioSource
  private let lock: FileLock
  private let matrix: ChannelMatrix
  private var resampler: Resampler
  /// Frames in the file's format, and with the requested channels.
  private let raw: UnsafeMutableRawBufferPointer
  private let mixed: UnsafeMutableBufferPointer<Float>
  /// Index in `mixed` of the next frame for the resampler, and number of frames.
  private var next = 0
  private var filled = 0
  private var isAtEnd = false
  private var given: Int64 = 0

  private static let readFrames = 1_024

  init(_ path: String, rate: Int, channels: Int) throws(NodeProblem) {
    let lock = try FileLock(path, for: .reading)
    let source = try AudioFile.open(path, sample: .f32)
    do {
      resampler = try Resampler(
        from: source.info.rate, to: rate, channels: channels, alignment: .compensated)
    } catch {
      throw NodeProblem(
        "\"\(path)\" has \(source.info.rate) Hz, which cannot be resampled to \(rate) Hz", parameter: "path",
        cure: "convert it first: ffmpeg -i \"\(path)\" -ar \(rate) sound.wav")
    }
    self.path = path
    self.lock = consume lock
    self.source = source
    matrix = ChannelMatrix(inputs: source.info.channels, outputs: channels)
    unsafe raw = .allocate(byteCount: Self.readFrames * source.frameBytes, alignment: 16)
    unsafe mixed = .allocate(capacity: Self.readFrames * channels)
    unsafe mixed.initialize(repeating: 0)
  }

  deinit {
    unsafe raw.deallocate()
    unsafe mixed.deallocate()
  }

  /// Fills interleaved frames, and returns whether the last of the file is among them; fewer than fit only then.
  func read(into target: UnsafeMutableBufferPointer<Float>) throws(NodeFault) -> (count: Int, hasEnded: Bool)
  {
    let channels = resampler.channels
    let wanted = target.count / channels
    var done = 0
    while done < wanted {
      if next == filled && !isAtEnd { try refill() }
      var rest = unsafe MutableSpan(_unsafeElements: target.extracting(done * channels..<target.count))
      if next < filled {
        let input = unsafe Span(_unsafeElements: mixed.extracting(next * channels..<filled * channels))
        let progress = resampler.process(input, into: &rest)
        next += progress.consumed
        done += progress.produced
      } else {
        let count = resampler.flush(into: &rest)
        guard count > 0 else { break }
        done += count
      }
    }
    given += Int64(done)
    return (done, done < wanted)
  }

  /// Reads the next frames of the file and converts their channels.
  private func refill() throws(NodeFault) {
    filled = try unsafe source.read(into: raw)
    next = 0
    isAtEnd = filled < Self.readFrames
    let floats = unsafe raw.bindMemory(to: Float.self).extracting(0..<filled * source.info.channels)
    var target = unsafe MutableSpan(_unsafeElements: mixed)
    matrix.apply(unsafe Span(_unsafeElements: floats), into: &target)
  }

  /// Goes back to the first sample; false if the file had none.
  func rewind() throws(NodeFault) -> Bool {
    guard given > 0 else { return false }
    try source.seek(to: 0)
    resampler.reset()
    (next, filled, isAtEnd, given) = (0, 0, false, 0)
    return true
  }

  /// The message for a failed read.
  func message(_ fault: NodeFault) -> String {
    AudioRead.message(fault, path, source, rate: source.info.rate)
  }
}
