internal import MillraceCore
internal import MillraceFiles

/// One utterance in MP3 after the other, cut anywhere, to PCM of one rate and channel count.
///
/// What comes depends on the stream alone, never on how it was cut: frames are found here, and only whole ones decoded. A stream
/// whose rate changes goes on at the output's rate: each rate of MPEG audio has its resampler, made beforehand.
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
    /// The utterance ended inside a frame; so many bytes of it came, from `offset` on.
    case truncated(offset: Int64, count: Int64)
    /// An utterance of so many bytes without a frame in it.
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
  /// The rate of the stream, as a number of the bank's.
  private var current: Int?
  private var sourceChannels = 0
  private var lastChannels = 0

  /// What came out last: `count` samples per channel.
  private(set) var sound: FrameBuffer
  private(set) var count = 0

  /// The frame that was fed last, and what the library made of it, until that is worked off.
  private var place: (offset: Int64, size: Int) = (0, 0)
  private var waiting: LibMPG123.Frame?
  /// The library has nothing more to say about it.
  private var isWorkedOff = true

  private var isOpen = false
  /// Bytes handed over, and frames found, in this utterance.
  private var fed: Int64 = 0
  private var frames = 0
  private var isSilenceTold = false

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

  /// Forgets the stream. What is fed next begins an utterance.
  mutating func forget() {
    isOpen = false
    count = 0
    unsafe waiting = nil
    current = nil
  }

  /// Takes the next bytes and answers how many of them.
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
    (isOpen, fed, frames, isSilenceTold, isWorkedOff) = (true, 0, 0, false, true)
  }

  // MARK: Out

  /// Decodes on. `sound` is valid until the next call.
  mutating func next() -> Step { step(isEnding: false) ?? .needsMore }

  /// Gives what the filter still holds, once the utterance's last byte was worked off, and ends it. Called again while it
  /// answers something.
  mutating func finish() -> Step? {
    if let step = step(isEnding: true) { return step }
    if isOpen && frames == 0 && !isSilenceTold {
      isSilenceTold = true
      return .notice(.silent(count: fed))
    }
    if flush() { return .sound }
    forget()
    return nil
  }

  /// One step; nil when there is nothing to do without more bytes.
  private mutating func step(isEnding: Bool) -> Step? {
    count = 0
    guard isOpen else { return nil }
    while true {
      if let frame = unsafe waiting {
        if let step = unsafe work(off: frame) { return step }
        continue
      }
      if !isWorkedOff {
        switch unsafe decoder.next() {
        case .frame(let frame):
          unsafe waiting = unsafe frame
          continue
        case .needsMore: isWorkedOff = true
        case .failed:
          isWorkedOff = true
          return .notice(.damaged(offset: place.offset, count: Int64(place.size)))
        }
      }
      switch framer.next(isEnding: isEnding) {
      case .frame(let offset, let size):
        place = (offset, size)
        frames += 1
        let frame = unsafe framer.frame()
        decoder.feed(frame)
        isWorkedOff = false
      case .damaged(let offset, let count):
        // Where no frame was found at all, that is told instead.
        if frames > 0 || !isEnding { return .notice(.damaged(offset: offset, count: count)) }
      case .cut(let offset, let count): return .notice(.truncated(offset: offset, count: count))
      case .needsMore: return nil
      }
    }
  }

  /// One step of what a frame asks for; nil: look again.
  @unsafe
  private mutating func work(off frame: LibMPG123.Frame) -> Step? {
    guard let current else { return unsafe adopt(frame) }
    if unsafe bank.rates[current] != frame.rate {
      // The old filter gives what it holds, then the new rate begins.
      return flush() ? .sound : nil
    }
    if let notice = unsafe noteChannels(of: frame) { return .notice(notice) }
    unsafe waiting = nil
    return unsafe convert(frame.start, frame.byteCount)
  }

  /// Goes over to a frame's rate.
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

  /// A change of channels is told when a second frame agrees: one alone is a damaged header. The output's channels stay.
  @unsafe
  private mutating func noteChannels(of frame: LibMPG123.Frame) -> Notice? {
    let agrees = unsafe frame.channels == lastChannels
    unsafe lastChannels = frame.channels
    guard agrees, unsafe frame.channels != sourceChannels else { return nil }
    unsafe sourceChannels = frame.channels
    return unsafe .format(rate: frame.rate, channels: frame.channels, offset: place.offset)
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

  /// Puts what the filter still holds into `sound`, and leaves its rate; false when that is nothing.
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
