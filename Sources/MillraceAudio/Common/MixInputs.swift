internal import MillraceCore
internal import MillraceDSP

/// The inputs of a mixer: the packet each holds, how far it is known, its gain. Memory is allocated in `init`.
@safe
struct MixInputs: ~Copyable {
  /// One input without its packet.
  private struct Input {
    var frameBytes = 2
    var sample = SampleType.s16
    var gain = GainRamp(gain: 1)
    /// True while `packets` holds one for it, which covers positions `start..<end`.
    var holds = false
    var start: Int64 = 0
    var end: Int64 = 0
    /// Difference from the input's positions to the mix's; wraps around.
    var offset: Int64 = 0
    /// Position up to which everything is known; nil: nothing received yet.
    var known: Int64?
    /// Where an unreported utterance ends, and its reply. Nothing after it is taken before it is reported.
    var utteranceEnd: Int64?
    var utterance = HeldReply()
  }

  /// Longest silence inside an input, in seconds. A larger jump, forwards or back, is realigned (see ``place(_:of:mixed:_:)``).
  static let longestGap: Int64 = 3_600
  /// Positions beyond it are never used in the mix, so that none can wrap around: 2^62 samples outlast any graph.
  private static let farthest: Int64 = 1 << 62

  /// Number of inputs, linked or not.
  let count: Int
  /// `longestGap` in samples.
  private let gap: Int64
  private let channels: Int
  // Not a buffer pointer: changing an element's gain in place through one does not compile under ThreadSanitizer.
  private let inputs: UnsafeMutablePointer<Input>
  private let packets: UnsafeMutablePointer<Packet>
  /// Part of one input in float, while its gain is ramping.
  private let scratch: UnsafeMutableBufferPointer<Float>
  private let total: UnsafeMutableBufferPointer<Float>
  /// A position and its time, for stretches where no input has audio.
  private var anchorPosition: Int64 = 0
  private var anchorTime: Nanoseconds = 0

  /// Makes `count` inputs for stretches of up to `longest` samples per channel.
  init(count: Int, channels: Int, rate: Int, longest: Int) {
    self.count = count
    gap = Self.longestGap * Int64(rate)
    self.channels = channels
    unsafe inputs = .allocate(capacity: count)
    unsafe inputs.initialize(repeating: Input(), count: count)
    unsafe packets = .allocate(capacity: count)
    unsafe scratch = .allocate(capacity: longest * channels)
    unsafe scratch.initialize(repeating: 0)
    unsafe total = .allocate(capacity: longest * channels)
    unsafe total.initialize(repeating: 0)
  }

  deinit {
    for index in 0..<count where unsafe inputs[index].holds {
      unsafe (packets + index).deinitialize(count: 1)
    }
    unsafe packets.deallocate()
    unsafe inputs.deallocate()
    unsafe scratch.deallocate()
    unsafe total.deallocate()
  }

  /// Sets the sample type of an input.
  mutating func setSample(_ sample: SampleType, of index: Int) {
    unsafe inputs[index].sample = sample
    unsafe inputs[index].frameBytes = channels * sample.byteCount
  }

  /// Ramps an input's gain, an amplitude factor, over some frames.
  mutating func setGain(_ gain: Double, of index: Int, frames: Int) {
    // Copied out and back: the compiler generates invalid code for a mutating call in place under ThreadSanitizer.
    var ramp = unsafe inputs[index].gain
    ramp.ramp(to: gain, frames: frames)
    unsafe inputs[index].gain = ramp
  }

  /// Lowest position of the held packets; nil if there are none.
  var firstPosition: Int64? {
    var lowest = firstEnd
    for index in 0..<count where unsafe inputs[index].holds {
      lowest = unsafe min(lowest ?? .max, inputs[index].start)
    }
    return lowest
  }

  /// The first position at which an utterance ends; nil: none known.
  var firstEnd: Int64? {
    var lowest: Int64?
    for index in 0..<count {
      guard let end = unsafe inputs[index].utteranceEnd else { continue }
      lowest = min(lowest ?? .max, end)
    }
    return lowest
  }

  /// The reply of an utterance that ends at the mix's position, once; nil: none ends there.
  mutating func takeEnd(at mixed: Int64) -> HeldReply? {
    var reply: HeldReply?
    for index in 0..<count {
      guard let end = unsafe inputs[index].utteranceEnd, end <= mixed else { continue }
      let own = unsafe inputs[index].utterance
      reply = reply == nil || reply == own ? own : HeldReply()
      unsafe inputs[index].utteranceEnd = nil
    }
    return reply
  }

  /// Takes packets where none is held, and returns the position up to which every input is known. `isLast`: no input will have
  /// anything after that.
  mutating func refill(mixed: Int64?, _ ports: inout Ports) -> (limit: Int64, isLast: Bool) {
    var limit = Int64.max
    var last = Int64.min
    for index in 0..<count {
      while unsafe !inputs[index].holds && inputs[index].utteranceEnd == nil {
        guard let packet = ports.next(index) else { break }
        hold(packet, index, mixed: mixed, &ports)
      }
      let known = unsafe inputs[index].known ?? .min
      if ports.isOver(index) { last = max(last, known) } else { limit = min(limit, known) }
    }
    return limit == .max ? (last, true) : (limit, false)
  }

  /// Holds a packet, unless it is entirely too late.
  private mutating func hold(
    _ packet: consuming Packet, _ index: Int, mixed: Int64?, _ ports: inout Ports
  ) {
    let frames = unsafe Int(packet.byteCount) / inputs[index].frameBytes
    let start = place(packet.position, of: index, mixed: mixed, &ports)
    let end = start + (frames > 0 ? Int64(frames) : min(max(0, Int64(packet.duration)), gap))
    unsafe inputs[index].known = max(inputs[index].known ?? .min, end)
    if packet.flags.contains(.endOfUtterance) {
      unsafe inputs[index].utteranceEnd = max(end, mixed ?? end)
      unsafe inputs[index].utterance = HeldReply(of: packet)
    }
    guard frames > 0, end > mixed ?? .min else { return }
    unsafe inputs[index].start = start
    unsafe inputs[index].end = end
    unsafe inputs[index].holds = true
    unsafe (packets + index).initialize(to: packet)
  }

  /// Maps a position of an input to the mix.
  ///
  /// A position further than `longestGap` from the expected one restarts that input: it is placed at the expected position, as is
  /// what follows, and an event is posted. An input that has not started is expected at the mix's position, or where the first one
  /// begins; without any reference, every position up to `farthest` is accepted.
  private mutating func place(
    _ position: Int64, of index: Int, mixed: Int64?, _ ports: inout Ports
  ) -> Int64 {
    let input = unsafe inputs[index]
    let start = position &+ input.offset
    let expected = input.known.map { max($0, mixed ?? $0) } ?? mixed ?? firstPosition
    // Distances wrap around, as an input's positions may.
    let distance = (start &- (expected ?? start)).magnitude
    guard distance > gap.magnitude || start.magnitude > Self.farthest.magnitude else { return start }
    let place = expected ?? 0
    unsafe inputs[index].offset = place &- position
    ports.post(AudioMix.Event.jumped.rawValue) { event in
      event.field("input", index + 1)
      event.field("position", Int(position))
      event.field("expected", Int(place &- input.offset))
    }
    return place
  }

  private mutating func release(_ index: Int) {
    unsafe inputs[index].holds = false
    unsafe (packets + index).deinitialize(count: 1)
  }

  /// Time of a position: that of the first input that has it, otherwise extrapolated from the last known one.
  mutating func time(of position: Int64, rate: Int) -> Nanoseconds {
    for index in 0..<count {
      let input = unsafe inputs[index]
      guard input.holds, input.start <= position, position < input.end else { continue }
      anchorTime = unsafe packets[index].timestamp &+ .samples(position &- input.start, rate: rate)
      anchorPosition = position
      return anchorTime
    }
    return anchorTime &+ .samples(position &- anchorPosition, rate: rate)
  }

  /// Adds all inputs over a stretch to the sum, from frame `offset` of it on. `reply` is the reply the sum belongs to: nil while it
  /// is silent, none if not all of it belongs to one.
  mutating func sum(from start: Int64, frames: Int, at offset: Int, into reply: inout HeldReply?) {
    let end = start &+ Int64(frames)
    for index in 0..<count {
      let input = unsafe inputs[index]
      guard input.holds, input.start < end else { continue }
      let (first, past) = (max(start, input.start), min(end, input.end))
      let place = (offset + Int(first &- start)) * channels
      let target = unsafe total.extracting(place..<place + Int(past &- first) * channels)
      unsafe add(index, Int(first &- input.start) * channels, to: target)
      let own = unsafe HeldReply(of: packets[index])
      reply = reply == nil || reply == own ? own : HeldReply()
      if input.end <= end { release(index) }
    }
  }

  /// Silences the sum.
  mutating func clearSum() { unsafe total.update(repeating: 0) }

  /// Adds the samples of the held packet from `first` on.
  private mutating func add(_ index: Int, _ first: Int, to target: UnsafeMutableBufferPointer<Float>) {
    let count = target.count
    let gain = unsafe inputs[index].gain
    var sum = unsafe MutableSpan(_unsafeElements: target)
    guard !gain.isRamping else { return unsafe addRamped(index, first, to: target) }
    switch unsafe inputs[index].sample {
    case .s16:
      let run = unsafe packets[index].samples(of: Int16.self).extracting(first..<first + count)
      SampleMath.mix(run, gain: Float(gain.target), into: &sum)
    case .f32:
      let isSound = unsafe SampleMath.isSane(
        packets[index].samples(of: Float.self).extracting(first..<first + count))
      guard isSound else { return unsafe addRamped(index, first, to: target) }
      let run = unsafe packets[index].samples(of: Float.self).extracting(first..<first + count)
      SampleMath.mix(run, gain: Float(gain.target), into: &sum)
    }
  }

  private mutating func addRamped(_ index: Int, _ first: Int, to target: UnsafeMutableBufferPointer<Float>) {
    let count = target.count
    var floats = unsafe MutableSpan(_unsafeElements: scratch.extracting(0..<count))
    switch unsafe inputs[index].sample {
    case .s16:
      SampleConversion.convert(
        unsafe packets[index].samples(of: Int16.self).extracting(first..<first + count), into: &floats)
    case .f32:
      let run = unsafe packets[index].samples(of: Float.self).extracting(first..<first + count)
      for place in run.indices { floats[place] = run[place] }
      // A NaN in one input must not silence the others.
      SampleMath.sanitize(&floats)
    }
    // As in `setGain`.
    var gain = unsafe inputs[index].gain
    gain.apply(to: &floats, channels: channels)
    unsafe inputs[index].gain = gain
    var sum = unsafe MutableSpan(_unsafeElements: target)
    SampleMath.mix(floats.span, into: &sum)
  }

  /// The first samples of the sum, all channels together.
  var result: Span<Float> {
    @_lifetime(borrow self)
    borrowing get { unsafe _overrideLifetime(Span(_unsafeElements: total), borrowing: self) }
  }

  /// Drops held packets of replies before the current one.
  mutating func dropReplies(before current: UInt32) {
    for index in 0..<count where unsafe inputs[index].holds {
      if unsafe HeldReply(of: packets[index]).isStale(at: current) { release(index) }
    }
    for index in 0..<count where unsafe inputs[index].utterance.isStale(at: current) {
      unsafe inputs[index].utteranceEnd = nil
    }
  }
}
