internal import MillraceCore

/// One utterance in MP3 after the other, cut anywhere, to PCM of one rate and channel count.
///
/// The samples depend on the stream alone, never on how it was cut. A stream whose rate changes goes on at the output's rate:
/// each rate of MPEG audio has its resampler, made beforehand. A change that only one frame claims is a damaged header, not a
/// change: the first frame of another rate waits until the second agrees.
///
/// Feed only when `next` answers `needsMore`. No heap of its own after `init`; libmpg123 takes some when a stream is opened.
@safe
struct MP3Stream: ~Copyable {
  /// Something to be told.
  enum Notice: Equatable {
    /// The stream's own form, at the start of each utterance and where it changes; `offset` is that of the frame.
    case format(rate: Int, channels: Int, offset: Int64)
    /// So many bytes from `offset` on were no sound.
    case damaged(offset: Int64, count: Int64)
    /// An utterance of so many bytes without a frame in it.
    case silent(count: Int64)
  }

  enum Step: Equatable {
    /// `count` samples per channel are in `sound`.
    case sound
    case notice(Notice)
    case needsMore
  }

  private var decoder: LibMPG123
  private let sample: SampleType
  private var bank: ResamplerBank
  /// The rate of the stream, as a number of the bank's.
  private var current: Int?
  private var sourceChannels = 0
  private var lastChannels = 0

  /// What came out last: `count` samples per channel.
  private(set) var sound: FrameBuffer
  private(set) var count = 0

  /// The first frame of another rate, until the next one agrees.
  private var suspect: FrameBuffer
  private var suspectBytes = 0
  private var suspectFrame: (rate: Int, offset: Int64, size: Int)?
  private var isConfirmed = false
  /// A frame that waits for what has to come before it.
  private var waiting: LibMPG123.Frame?

  private var isOpen = false
  /// Bytes handed over, and frames found, in this utterance.
  private var fed: Int64 = 0
  private var frames = 0
  /// Where the next frame should begin.
  private var expected: Int64 = 0
  /// The utterance begins with a tag or a frame header.
  private var startsWell = false
  private var hasFlushed = false

  /// Bytes that may lie before the first frame without being damage: an encoder's own frame, which holds no sound (the longest
  /// frame of layer III is 1,441 bytes: 320 kbit/s at 32 kHz, padded).
  private static let headBytes: Int64 = 1_441

  init(rate: Int, channels: Int, sample: SampleType) throws(NodeProblem) {
    let decoder = try LibMPG123(channels: channels, sample: sample)
    let bank = try ResamplerBank(
      from: LibMPG123.rates, to: rate, channels: channels, longest: LibMPG123.longestFrame)
    self.sample = sample
    let frameBytes = channels * sample.byteCount
    sound = FrameBuffer(byteCount: bank.longest * frameBytes)
    suspect = FrameBuffer(byteCount: LibMPG123.longestFrame * frameBytes)
    self.decoder = decoder
    self.bank = bank
    unsafe waiting = nil
  }

  /// Forgets the stream. What is fed next begins an utterance.
  mutating func forget() {
    isOpen = false
    count = 0
    endFrames()
  }

  private mutating func endFrames() {
    unsafe waiting = nil
    suspectFrame = nil
    isConfirmed = false
    current = nil
  }

  /// Takes the next bytes and answers how many of them.
  mutating func feed(_ bytes: Span<UInt8>) -> Int {
    guard bytes.count > 0 else { return 0 }
    if !isOpen { begin(bytes[0]) }
    let taken = min(bytes.count, LibMPG123.pieceBytes)
    _ = decoder.feed(bytes.extracting(0..<taken))
    fed += Int64(taken)
    return taken
  }

  private mutating func begin(_ first: UInt8) {
    endFrames()
    // A frame header begins with eleven set bits, a tag with "ID3".
    startsWell = first == 0xFF || first == UInt8(ascii: "I")
    _ = decoder.open(isTrusted: first == 0xFF)
    (isOpen, fed, frames, expected, hasFlushed) = (true, 0, 0, 0, false)
  }

  // MARK: Out

  /// Decodes on. `sound` is valid until the next call.
  mutating func next() -> Step {
    count = 0
    guard isOpen else { return .needsMore }
    while true {
      if let frame = unsafe waiting {
        if let step = unsafe work(off: frame) { return step }
        continue
      }
      switch unsafe decoder.next() {
      case .frame(let frame):
        unsafe waiting = unsafe frame
        if let notice = unsafe account(for: frame) { return .notice(notice) }
      case .needsMore, .failed: return .needsMore
      }
    }
  }

  /// Gives what the filter still holds, once the utterance's last byte was worked off, and ends it. Called again while it
  /// answers something.
  mutating func finish() -> Step? {
    count = 0
    guard isOpen else { return nil }
    if let suspect = suspectFrame {
      suspectFrame = nil
      return .notice(.damaged(offset: suspect.offset, count: Int64(suspect.size)))
    }
    if !hasFlushed {
      hasFlushed = true
      if frames == 0 { return .notice(.silent(count: fed)) }
      if flush() { return .sound }
    }
    forget()
    return nil
  }

  /// Compares where a frame lies with where it should.
  @unsafe
  private mutating func account(for frame: LibMPG123.Frame) -> Notice? {
    let missing = unsafe frame.offset - expected
    let from = expected
    unsafe expected = frame.offset + Int64(frame.size)
    frames += 1
    guard missing > 0, unsafe !frame.followsTag else { return nil }
    if frames == 1 && startsWell && missing <= Self.headBytes { return nil }
    return .damaged(offset: from, count: missing)
  }

  /// One step of what a frame asks for; nil: look again.
  @unsafe
  private mutating func work(off frame: LibMPG123.Frame) -> Step? {
    guard let current else { return unsafe adopt(frame) }
    if isConfirmed {
      (isConfirmed, suspectFrame) = (false, nil)
      return unsafe convert(UnsafeRawPointer(suspect.start), suspectBytes)
    }
    let isSame = unsafe bank.rates[current] == frame.rate
    if let suspect = suspectFrame, unsafe isSame || suspect.rate != frame.rate {
      suspectFrame = nil
      return .notice(.damaged(offset: suspect.offset, count: Int64(suspect.size)))
    }
    if isSame {
      if let notice = unsafe noteChannels(of: frame) { return .notice(notice) }
      unsafe waiting = nil
      return unsafe convert(frame.start, frame.byteCount)
    }
    guard suspectFrame != nil else { return unsafe hold(frame) }
    // The second frame agrees: the old filter gives what it holds, then the new rate begins with the first.
    if !hasFlushed {
      hasFlushed = true
      if flush() { return .sound }
    }
    isConfirmed = true
    self.current = nil
    return nil
  }

  /// Keeps a frame of another rate until the next one agrees with it.
  @unsafe
  private mutating func hold(_ frame: LibMPG123.Frame) -> Step? {
    suspectFrame = unsafe (frame.rate, frame.offset, frame.size)
    suspectBytes = unsafe min(frame.byteCount, suspect.byteCount)
    unsafe suspect.start.copyMemory(from: frame.start, byteCount: suspectBytes)
    unsafe waiting = nil
    return nil
  }

  /// Goes over to a frame's rate.
  @unsafe
  private mutating func adopt(_ frame: LibMPG123.Frame) -> Step? {
    guard let index = unsafe bank.index(of: frame.rate) else {
      unsafe waiting = nil
      return unsafe .notice(.damaged(offset: frame.offset, count: Int64(frame.size)))
    }
    current = index
    bank.reset(index)
    hasFlushed = false
    unsafe (sourceChannels, lastChannels) = (frame.channels, frame.channels)
    let offset = unsafe suspectFrame?.offset ?? frame.offset
    return unsafe .notice(.format(rate: frame.rate, channels: frame.channels, offset: offset))
  }

  /// A change of channels is told when a second frame agrees. The output's channels stay.
  @unsafe
  private mutating func noteChannels(of frame: LibMPG123.Frame) -> Notice? {
    let agrees = unsafe frame.channels == lastChannels
    unsafe lastChannels = frame.channels
    guard agrees, unsafe frame.channels != sourceChannels else { return nil }
    unsafe sourceChannels = frame.channels
    return unsafe .format(rate: frame.rate, channels: frame.channels, offset: frame.offset)
  }

  // MARK: Rate

  /// Brings decoded samples to the output's rate; nil when they only fill the filter.
  @unsafe
  private mutating func convert(_ start: UnsafeRawPointer, _ byteCount: Int) -> Step? {
    guard let current else { return nil }
    let values = byteCount / sample.byteCount
    var made = 0
    switch sample {
    case .s16:
      let input = unsafe Span(_unsafeStart: start.assumingMemoryBound(to: Int16.self), count: values)
      var output = unsafe sound.room(for: Int16.self)
      made = bank.process(current, input, into: &output)
    case .f32:
      let input = unsafe Span(_unsafeStart: start.assumingMemoryBound(to: Float.self), count: values)
      var output = unsafe sound.room(for: Float.self)
      made = bank.process(current, input, into: &output)
    }
    count = made
    return made > 0 ? .sound : nil
  }

  /// Puts what the filter still holds into `sound`; false when that is nothing.
  private mutating func flush() -> Bool {
    guard let current else { return false }
    var made = 0
    switch sample {
    case .s16:
      var output = unsafe sound.room(for: Int16.self)
      made = bank.flush(current, into: &output)
    case .f32:
      var output = unsafe sound.room(for: Float.self)
      made = bank.flush(current, into: &output)
    }
    count = made
    return made > 0
  }
}
