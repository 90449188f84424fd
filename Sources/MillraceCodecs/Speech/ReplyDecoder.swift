internal import MillraceCore
internal import MillraceDSP

/// Decodes a sequence of utterances in any supported format to float PCM with a fixed rate and channel count.
///
/// Feed only when `next` returns `needsMore`. A class, so that the node can hold any of them. No heap after `init`, except what a library
/// allocates when an utterance starts. Not thread-safe.
class ReplyDecoder {
  /// The result of a decoding step.
  enum Step: Equatable {
    /// `count` frames are in `sound`, valid until the next call.
    case sound
    case notice(ReplyNotice)
    case needsMore
  }

  /// Frames in `sound`.
  final var count = 0

  init() {}

  /// The latest frames, interleaved.
  @unsafe
  var sound: UnsafePointer<Float> { fatalError("subclasses override sound") }

  /// Takes bytes of a packet from `offset` on and returns how many; eventually all of them.
  func feed(_ bytes: Span<UInt8>, from offset: Int, of entry: ReplyQueue.Entry) -> Int {
    fatalError("subclasses override feed")
  }

  /// Decodes the next step.
  func next() -> Step { fatalError("subclasses override next") }

  /// Returns what is left at the end of an utterance; nil if nothing is.
  func finish() -> Step? { nil }

  /// Drops the utterance.
  func reset() { count = 0 }

  /// The decoder for a format; nil if the format cannot carry a reply.
  static func make(for input: Format, rate: Int, channels: Int) throws(NodeProblem) -> ReplyDecoder? {
    switch input {
    case .mp3: try MP3Reply(rate: rate, channels: channels)
    case .opus: try OpusReply(isOgg: false, rate: rate, channels: channels)
    case .ogg: try OpusReply(isOgg: true, rate: rate, channels: channels)
    case .pcm(let from, let count, let sample):
      try PCMReply(from: from, channels: count, sample: sample, to: rate, channels: channels)
    default: nil
    }
  }
}

/// Something to report about an utterance.
enum ReplyNotice: Equatable {
  case format(rate: Int, channels: Int)
  /// `count` bytes from `offset` of the utterance were not audio.
  case damaged(offset: Int64, count: Int64)
  /// The utterance ended inside a frame or a page; `count` bytes of it arrived, from `offset`.
  case truncated(offset: Int64, count: Int64)
  /// An utterance without audio.
  case silent(count: Int64)
}

/// Decodes replies in MP3.
final class MP3Reply: ReplyDecoder {
  private var stream: MP3Stream

  init(rate: Int, channels: Int) throws(NodeProblem) {
    stream = try MP3Stream(rate: rate, channels: channels, sample: .f32)
    super.init()
  }

  override var sound: UnsafePointer<Float> {
    unsafe UnsafePointer(stream.sound.start.assumingMemoryBound(to: Float.self))
  }

  override func feed(_ bytes: Span<UInt8>, from offset: Int, of entry: ReplyQueue.Entry) -> Int {
    stream.feed(bytes.extracting(offset..<bytes.count))
  }

  override func next() -> Step { convert(stream.next()) }

  override func finish() -> Step? { stream.finish().map { convert($0) } }

  override func reset() {
    super.reset()
    stream.reset()
  }

  private func convert(_ step: MP3Stream.Step) -> Step {
    count = stream.count
    switch step {
    case .sound: return .sound
    case .needsMore: return .needsMore
    case .notice(.format(let rate, let channels, _)): return .notice(.format(rate: rate, channels: channels))
    case .notice(.damaged(let offset, let count)): return .notice(.damaged(offset: offset, count: count))
    case .notice(.truncated(let offset, let count)):
      return .notice(.truncated(offset: offset, count: count))
    case .notice(.silent(let count)): return .notice(.silent(count: count))
    }
  }
}

/// Decodes replies in PCM of any rate.
final class PCMReply: ReplyDecoder {
  private let frameBytes: Int
  private let sample: SampleType
  private let channels: Int
  private let matrix: ChannelMatrix?
  private var bank: ResamplerBank
  /// A piece as float samples, then with the output's channels, then at the output's rate.
  private var floats: FrameBuffer
  private var folded: FrameBuffer
  private var output: FrameBuffer
  /// Frames in `folded` that `next` has not taken.
  private var waiting = 0
  private var isActive = false

  /// Frames consumed at a time.
  private static let piece = 1_024

  init(from: Int, channels inputs: Int, sample: SampleType, to rate: Int, channels: Int) throws(NodeProblem) {
    let bank = try ResamplerBank(from: [from], to: rate, channels: channels, longest: Self.piece)
    frameBytes = inputs * sample.byteCount
    self.sample = sample
    self.channels = channels
    matrix = inputs == channels ? nil : ChannelMatrix(inputs: inputs, outputs: channels)
    floats = FrameBuffer(byteCount: Self.piece * inputs * 4)
    folded = FrameBuffer(byteCount: Self.piece * channels * 4)
    output = FrameBuffer(byteCount: bank.longest * channels * 4)
    self.bank = bank
    super.init()
  }

  override var sound: UnsafePointer<Float> {
    unsafe UnsafePointer(output.start.assumingMemoryBound(to: Float.self))
  }

  override func feed(_ bytes: Span<UInt8>, from offset: Int, of entry: ReplyQueue.Entry) -> Int {
    let frames = min((bytes.count - offset) / frameBytes, Self.piece)
    // A remainder shorter than a frame is ignored.
    guard frames > 0 else { return bytes.count - offset }
    if !isActive { bank.reset(0) }
    isActive = true
    let taken = frames * frameBytes
    unsafe bytes.extracting(offset..<offset + taken).withUnsafeBytes { unsafe convert($0, frames: frames) }
    waiting = frames
    return taken
  }

  private func convert(_ bytes: UnsafeRawBufferPointer, frames: Int) {
    let values = frames * frameBytes / sample.byteCount
    let start = matrix == nil ? unsafe folded.start : unsafe floats.start
    var target = unsafe MutableSpan(_unsafeStart: start.assumingMemoryBound(to: Float.self), count: values)
    switch sample {
    case .s16:
      SampleConversion.convert(unsafe Span(_unsafeElements: bytes.bindMemory(to: Int16.self)), into: &target)
    case .f32:
      let source = unsafe bytes.bindMemory(to: Float.self)
      for index in 0..<values { target[index] = unsafe source[index] }
      // NaN and infinities would stay in the filters.
      SampleMath.sanitize(&target)
    }
    guard let matrix else { return }
    var narrow = unsafe MutableSpan(
      _unsafeStart: folded.start.assumingMemoryBound(to: Float.self), count: frames * channels)
    matrix.apply(target.span, into: &narrow)
  }

  override func next() -> Step {
    count = 0
    guard waiting > 0 else { return .needsMore }
    let input = unsafe Span(
      _unsafeStart: UnsafePointer(folded.start.assumingMemoryBound(to: Float.self)), count: waiting * channels
    )
    var room = unsafe output.room(for: Float.self)
    waiting = 0
    count = bank.process(0, input, into: &room)
    return count > 0 ? .sound : .needsMore
  }

  override func finish() -> Step? {
    count = 0
    guard isActive else { return nil }
    isActive = false
    var room = unsafe output.room(for: Float.self)
    count = bank.flush(0, into: &room)
    return count > 0 ? .sound : nil
  }

  override func reset() {
    super.reset()
    (waiting, isActive) = (0, false)
  }
}
