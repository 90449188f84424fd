internal import MillraceCore
internal import MillraceFiles

/// Decodes a sequence of MP3 utterances, cut anywhere, to PCM with a fixed rate and channel count.
///
/// The output depends on the stream alone, not on how it was cut: framing happens here, and only whole frames are decoded. A stream whose
/// rate changes continues at the output's rate: there is a resampler for each rate of MPEG audio, made in advance.
///
/// Feed only when `next` returns `needsMore`. No heap after `init`, except what libmpg123 allocates when a stream is opened.
@safe
struct MP3Stream: ~Copyable {
  /// Something to report.
  enum Notice: Equatable {
    /// The stream's own format, at the start of each utterance and when it changes; `offset` is that of the frame.
    case format(rate: Int, channels: Int, offset: Int64)
    /// `count` bytes from `offset` were not audio.
    case damaged(offset: Int64, count: Int64)
    /// The utterance ended inside a frame; `count` bytes of it arrived, from `offset`.
    case truncated(offset: Int64, count: Int64)
    /// The utterance had `count` bytes and no frame.
    case silent(count: Int64)
  }

  enum Step: Equatable {
    /// `count` samples per channel are in `sound`.
    case sound
    case notice(Notice)
    case needsMore
  }

  private var framer = MP3Framer()
  private var decoder: LibMPG123
  private let sample: SampleType
  private var bank: ResamplerBank
  /// Index of the stream's rate in the bank.
  private var current: Int?
  private var sourceChannels = 0
  private var lastChannels = 0

  /// The last output: `count` samples per channel.
  private(set) var sound: FrameBuffer
  private(set) var count = 0

  /// The frame fed last, and what the library decoded of it, until that is consumed.
  private var place: (offset: Int64, size: Int) = (0, 0)
  private var waiting: LibMPG123.Frame?
  /// The library has returned everything for that frame.
  private var isFrameDone = true

  private var isOpen = false
  /// Bytes fed and frames found in this utterance.
  private var fed: Int64 = 0
  private var frames = 0
  private var hasReportedSilence = false

  init(rate: Int, channels: Int, sample: SampleType) throws(NodeProblem) {
    let decoder = try LibMPG123(channels: channels, sample: sample)
    let bank = try ResamplerBank(
      from: LibMPG123.rates, to: rate, channels: channels, longest: LibMPG123.longestFrame)
    self.sample = sample
    let frameBytes = channels * sample.byteCount
    sound = FrameBuffer(byteCount: bank.longest * frameBytes)
    self.decoder = decoder
    self.bank = bank
    unsafe waiting = nil
  }

  /// Drops the stream. The next bytes start an utterance.
  mutating func reset() {
    isOpen = false
    count = 0
    unsafe waiting = nil
    current = nil
  }

  /// Takes the next bytes and returns how many of them.
  mutating func feed(_ bytes: Span<UInt8>) -> Int {
    guard bytes.count > 0 else { return 0 }
    if !isOpen { begin() }
    let taken = framer.feed(bytes)
    fed += Int64(taken)
    return taken
  }

  private mutating func begin() {
    decoder.open()
    framer.reset()
    (isOpen, fed, frames, hasReportedSilence, isFrameDone) = (true, 0, 0, false, true)
  }

  // MARK: Output

  /// Decodes the next step. `sound` is valid until the next call.
  mutating func next() -> Step { step(isEnding: false) ?? .needsMore }

  /// Flushes the filter after the utterance's last byte was decoded, and ends the utterance. Call it again as long as it returns
  /// a step.
  mutating func finish() -> Step? {
    if let step = step(isEnding: true) { return step }
    if isOpen && frames == 0 && !hasReportedSilence {
      hasReportedSilence = true
      return .notice(.silent(count: fed))
    }
    if flush() { return .sound }
    reset()
    return nil
  }

  /// One step; nil when more bytes are needed.
  private mutating func step(isEnding: Bool) -> Step? {
    count = 0
    guard isOpen else { return nil }
    while true {
      if let frame = unsafe waiting {
        if let step = unsafe process(frame) { return step }
        continue
      }
      if !isFrameDone {
        switch unsafe decoder.next() {
        case .frame(let frame):
          unsafe waiting = unsafe frame
          continue
        case .needsMore: isFrameDone = true
        case .failed:
          isFrameDone = true
          return .notice(.damaged(offset: place.offset, count: Int64(place.size)))
        }
      }
      switch framer.next(isEnding: isEnding) {
      case .frame(let offset, let size):
        place = (offset, size)
        frames += 1
        let frame = unsafe framer.frame()
        decoder.feed(frame)
        isFrameDone = false
      case .damaged(let offset, let count):
        // An utterance without any frame is reported as silent instead.
        if frames > 0 || !isEnding { return .notice(.damaged(offset: offset, count: count)) }
      case .cut(let offset, let count): return .notice(.truncated(offset: offset, count: count))
      case .needsMore: return nil
      }
    }
  }

  /// One step of handling a frame; nil: call again.
  @unsafe
  private mutating func process(_ frame: LibMPG123.Frame) -> Step? {
    guard let current else { return unsafe adopt(frame) }
    if unsafe bank.rates[current] != frame.rate {
      // Flush the old filter, then start the new rate.
      return flush() ? .sound : nil
    }
    if let notice = unsafe noteChannels(of: frame) { return .notice(notice) }
    unsafe waiting = nil
    return unsafe convert(frame.start, frame.byteCount)
  }

  /// Switches to a frame's rate.
  @unsafe
  private mutating func adopt(_ frame: LibMPG123.Frame) -> Step? {
    guard let index = unsafe bank.index(of: frame.rate) else {
      unsafe waiting = nil
      return .notice(.damaged(offset: place.offset, count: Int64(place.size)))
    }
    current = index
    bank.reset(index)
    unsafe (sourceChannels, lastChannels) = (frame.channels, frame.channels)
    return unsafe .notice(.format(rate: frame.rate, channels: frame.channels, offset: place.offset))
  }

  /// Reports a change of channels once a second frame confirms it: a single one is a damaged header. The output's channels stay.
  @unsafe
  private mutating func noteChannels(of frame: LibMPG123.Frame) -> Notice? {
    let agrees = unsafe frame.channels == lastChannels
    unsafe lastChannels = frame.channels
    guard agrees, unsafe frame.channels != sourceChannels else { return nil }
    unsafe sourceChannels = frame.channels
    return unsafe .format(rate: frame.rate, channels: frame.channels, offset: place.offset)
  }

  // MARK: Rate

  /// Resamples decoded samples; nil if they only fill the filter.
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

  /// Flushes the filter into `sound` and leaves its rate; false if the filter was empty.
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
    self.current = nil
    count = made
    return made > 0
  }
}
