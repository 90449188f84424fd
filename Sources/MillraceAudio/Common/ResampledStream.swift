internal import MillraceCore
internal import MillraceDSP

/// A resampler and its position in the stream: the input consumed, and the next output position.
@safe
struct ResampledStream: ~Copyable {
  var resampler: Resampler
  private let runsIn: Bool
  /// Silent input frames before a stream, an integer number of output samples, so that output positions stay exact.
  private let longestLeadIn: Int
  /// Those before this stream; none if it follows another's end, where the run-in would overlap it.
  private var leadIn: Int
  private let zeros: UnsafeMutableBufferPointer<Float>
  private let dump: UnsafeMutableBufferPointer<Float>

  private var isFresh = true
  private var followsEnd = false
  /// Input frames consumed, and index of the next output sample, counted from the lead-in.
  private var taken: Int64 = 0
  private var index: Int64 = 0
  /// Input position of the stream's start, and the corresponding output position.
  private var inputStart: Int64 = 0
  private var outputStart: Int64 = 0
  /// Time of the newest packet, and the stream index of its first frame.
  private var anchorTime: Nanoseconds = 0
  private var anchor: Int64 = 0
  private var isBroken = false

  /// A ratio that would need a longer lead-in keeps its positions within half a sample instead.
  private static let mostLeadIn = 4_096
  private static let chunk = 64

  init(_ resampler: consuming Resampler, runsIn: Bool) {
    let (rate, target, channels) = (resampler.inputRate, resampler.outputRate, resampler.channels)
    let step = rate / Self.divisor(rate, target)
    let latency = resampler.latencyFrames
    let whole = (latency + step - 1) / step * step
    longestLeadIn = !runsIn ? 0 : whole <= Self.mostLeadIn ? whole : latency
    leadIn = longestLeadIn
    self.runsIn = runsIn
    unsafe zeros = .allocate(capacity: Self.chunk * channels)
    unsafe zeros.initialize(repeating: 0)
    unsafe dump = .allocate(capacity: resampler.maximumOutputCount(forInput: Self.chunk) * channels)
    unsafe dump.initialize(repeating: 0)
    self.resampler = resampler
  }

  deinit {
    unsafe zeros.deallocate()
    unsafe dump.deallocate()
  }

  private static func divisor(_ a: Int, _ b: Int) -> Int { b == 0 ? a : divisor(b, a % b) }

  /// The next packet starts a new stream.
  mutating func forget() { isFresh = true }

  /// The stream has ended and is fully emitted: the next packet starts a new one right after it, without a run-in.
  mutating func end() { (isFresh, followsEnd) = (true, true) }

  /// Records a packet, restarting where it does not follow, and returns how many samples it will give.
  mutating func take(_ packet: borrowing Packet, frames: Int) -> Int {
    guard frames > 0 else {
      isFresh = true
      isBroken = true
      return 0
    }
    let jumps = packet.position > inputStart &+ taken
    if isFresh || jumps || packet.flags.contains(.discontinuity) {
      isBroken = isBroken || jumps && !isFresh || packet.flags.contains(.discontinuity)
      start(at: packet.position)
    }
    anchorTime = packet.timestamp
    anchor = taken
    taken &+= Int64(frames)
    return resampler.outputCount(forInput: frames)
  }

  private mutating func start(at position: Int64) {
    resampler.reset()
    (isFresh, taken, index, inputStart) = (false, 0, 0, position)
    leadIn = followsEnd ? 0 : longestLeadIn
    followsEnd = false
    outputStart = scaled(position)
    var left = leadIn
    while left > 0 {
      let frames = min(left, Self.chunk)
      let input = unsafe Span(_unsafeElements: zeros).extracting(0..<frames * resampler.channels)
      var output = unsafe MutableSpan(_unsafeElements: dump)
      index &+= Int64(resampler.process(input, into: &output).produced)
      left -= frames
    }
  }

  /// Writes time, position, duration and marks of the next `count` samples, and advances by them.
  mutating func describe(_ output: inout Packet, count: Int) {
    let offset =
      Nanoseconds.samples(index, rate: resampler.outputRate)
      &- .samples(anchor &+ Int64(leadIn), rate: resampler.inputRate)
    output.timestamp = anchorTime &+ offset
    output.position = outputStart &+ index &- scaled(Int64(leadIn))
    output.duration = count
    guard count > 0 else { return }
    if isBroken { output.flags.insert(.discontinuity) } else { output.flags.remove(.discontinuity) }
    isBroken = false
    index &+= Int64(count)
  }

  /// The output position of an input position, rounded down.
  func outputPosition(of position: Int64) -> Int64 { scaled(position) }

  /// Samples still to come from a finished utterance: up to where the next one would begin.
  var remainingOfUtterance: Int {
    guard !isFresh else { return 0 }
    let end = scaled(inputStart &+ taken)
    return Int(max(0, end &- outputStart &+ scaled(Int64(leadIn)) &- index))
  }

  /// Samples still to come from a finished stream: up to the rounded length of all input.
  var remaining: Int {
    guard !isFresh else { return 0 }
    let nearest = scaled(taken, plus: Int64(resampler.inputRate) / 2)
    return Int(max(0, scaled(Int64(leadIn)) &+ nearest &- index))
  }

  /// Converts input frames to output samples, rounded down. Whole seconds are split off to avoid overflow.
  private func scaled(_ frames: Int64, plus extra: Int64 = 0) -> Int64 {
    let (rate, target) = (Int64(resampler.inputRate), Int64(resampler.outputRate))
    var (seconds, rest) = frames.quotientAndRemainder(dividingBy: rate)
    if rest < 0 {
      seconds &-= 1
      rest &+= rate
    }
    return seconds &* target &+ (rest &* target &+ extra) / rate
  }
}
