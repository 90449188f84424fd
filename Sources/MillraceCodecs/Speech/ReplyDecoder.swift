internal import MillraceCore
internal import MillraceDSP

/// Decodes one utterance after the other to float PCM of one rate and channel count, whatever it comes as.
///
/// Feed only when `next` answers `needsMore`. A class, so that the node holds any of them; no heap after `init` but what a
/// library takes where an utterance begins. One thread at a time.
class ReplyDecoder {
  /// What came next.
  enum Step: Equatable {
    /// `count` frames are in `sound`, until the next call.
    case sound
    case notice(ReplyNotice)
    case needsMore
  }

  /// Frames in `sound`.
  final var count = 0

  init() {}

  /// The frames that came out last, interleaved.
  @unsafe
  var sound: UnsafePointer<Float> { fatalError("a subclass answers sound") }

  /// Takes bytes of a packet from `offset` on and answers how many; all of them in the end.
  func feed(_ bytes: Span<UInt8>, from offset: Int, of entry: ReplyQueue.Entry) -> Int {
    fatalError("a subclass answers feed")
  }

  /// Decodes on.
  func next() -> Step { fatalError("a subclass answers next") }

  /// Gives what is left at an utterance's end; nil: nothing.
  func finish() -> Step? { nil }

  /// Forgets the utterance.
  func forget() { count = 0 }

  /// The decoder for a format; nil: that format carries no reply.
  static func make(for input: Format, rate: Int, channels: Int) throws(NodeProblem) -> ReplyDecoder? {
    switch input {
    case .mp3: try MP3Reply(rate: rate, channels: channels)
    case .opus: try OpusReply(isInOgg: false, rate: rate, channels: channels)
    case .ogg: try OpusReply(isInOgg: true, rate: rate, channels: channels)
    case .pcm(let from, let count, let sample):
      try PCMReply(from: from, channels: count, sample: sample, to: rate, channels: channels)
    default: nil
    }
  }
}

/// Something about an utterance that has to be told.
enum ReplyNotice: Equatable {
  case format(rate: Int, channels: Int)
  /// So many bytes from `offset` of the utterance on were no sound.
  case damaged(offset: Int64, count: Int64)
  /// The utterance ended inside a frame or a page; so many bytes of it came, from `offset` on.
  case truncated(offset: Int64, count: Int64)
  /// An utterance without sound in it.
  case silent(count: Int64)
}

/// Replies in MP3.
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

  override func next() -> Step { told(stream.next()) }

  override func finish() -> Step? { stream.finish().map { told($0) } }

  override func forget() {
    super.forget()
    stream.forget()
  }

  private func told(_ step: MP3Stream.Step) -> Step {
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

/// Replies in PCM of any rate.
final class PCMReply: ReplyDecoder {
  private let frameBytes: Int
  private let sample: SampleType
  private let channels: Int
  private let matrix: ChannelMatrix?
  private var bank: ResamplerBank
  /// A piece as floats, and with the output's channels; then at its rate.
  private var floats: FrameBuffer
  private var folded: FrameBuffer
  private var output: FrameBuffer
  /// Frames in `folded` that wait for `next`.
  private var waiting = 0
  private var isUnderWay = false

  /// Frames taken at a time.
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
    // A rest shorter than a frame is no sound.
    guard frames > 0 else { return bytes.count - offset }
    if !isUnderWay { bank.reset(0) }
    isUnderWay = true
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
      // What is no sound would stay in the filters.
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
    guard isUnderWay else { return nil }
    isUnderWay = false
    var room = unsafe output.room(for: Float.self)
    count = bank.flush(0, into: &room)
    return count > 0 ? .sound : nil
  }

  override func forget() {
    super.forget()
    (waiting, isUnderWay) = (0, false)
  }
}
