internal import MillraceCore
internal import MillraceDSP

/// The audio of several inputs on one timeline, until it is written.
///
/// Positions count from the first sample received. An input's first packet is placed by its timestamp, rounded to a sample; those
/// after it by their positions alone. Audio for a part that has left the timeline is counted as late. Memory is allocated in `init`:
/// the wait limit and the longest packet, in floats.
@safe
struct RecordingTimeline: ~Copyable {
  /// One input's state.
  private struct Input {
    let place: RecordingLayout.Place
    /// Difference from the input's positions to the timeline's; nil before the first packet.
    var offset: Int64?
    /// Position up to which everything is known; nil: nothing received yet.
    var known: Int64?
    /// Of the held packet: frames not placed yet, index of the first, and its position.
    var left = 0
    var first = 0
    var next: Int64 = 0
    /// Frames dropped since the last report.
    var late = 0

    var holds: Bool { left > 0 }

    /// Skips frames of the held packet.
    mutating func skip(_ count: Int) {
      first += count
      next += Int64(count)
      left -= count
    }
  }

  /// Longest silence inside an input, in seconds; a position further ahead counts as an error and follows on directly.
  static let longestGap: Int64 = 3_600

  let rate: Int
  /// Channels of the timeline.
  let channels: Int
  private let capacity: Int
  private let inputs: UnsafeMutableBufferPointer<Input>
  private let packets: UnsafeMutablePointer<Packet>
  private let line: UnsafeMutableBufferPointer<Float>
  private var wait: WaitLimit
  /// Graph time of position 0.
  private var origin: Nanoseconds?
  /// The next position to write; it may still decrease before the first is written.
  private(set) var base: Int64?
  private var hasBegun = false

  init(_ layout: RecordingLayout, rate: Int, patience: Nanoseconds, longest: Int) {
    self.rate = rate
    self.wait = WaitLimit(patience)
    channels = layout.channels
    // Half as much again, for what arrives while the wait expires.
    capacity = Int(Double(patience) * 1.5e-9 * Double(rate)) + 2 * longest
    unsafe inputs = .allocate(capacity: layout.places.count)
    for (index, place) in layout.places.enumerated() {
      unsafe inputs.initializeElement(at: index, to: Input(place: place))
    }
    unsafe packets = .allocate(capacity: layout.places.count)
    unsafe line = .allocate(capacity: capacity * layout.channels)
    unsafe line.initialize(repeating: 0)
  }

  deinit {
    for index in unsafe inputs.indices where unsafe inputs[index].holds {
      unsafe (packets + index).deinitialize(count: 1)
    }
    unsafe packets.deallocate()
    unsafe inputs.deallocate()
    unsafe line.deallocate()
  }

  /// Number of inputs, linked or not.
  var count: Int { unsafe inputs.count }

  /// The position of a graph time; nil before anything arrived.
  func position(of time: Nanoseconds) -> Int64? {
    origin.map { Int64((Double(time &- $0) * Double(rate) / 1e9).rounded()) }
  }

  // MARK: Input

  /// Takes packets as long as the timeline has room.
  mutating func take(_ ports: inout Ports) {
    for index in 0..<count {
      while true {
        if unsafe inputs[index].holds { place(index) }
        guard unsafe !inputs[index].holds, let packet = ports.next(index) else { break }
        admit(packet, index)
      }
    }
  }

  /// Places a packet and holds the part that can still be recorded.
  private mutating func admit(_ packet: consuming Packet, _ index: Int) {
    var input = unsafe inputs[index]
    let frames = Int(packet.byteCount) / input.place.frameBytes
    let length = frames > 0 ? frames : packet.duration
    // The run-in of a filter or an encoder lies before position 0.
    let skipped = input.offset == nil ? Int(max(0, min(Int64(length), -packet.position))) : 0
    guard length > skipped else { return }
    let offset = offset(of: packet, skipped, input)
    let start = packet.position &+ Int64(skipped) &+ offset
    let cut = max(0, min(length - skipped, Int(floor(for: input, start) - start)))
    input.offset = offset
    input.known = max(input.known ?? .min, start)
    if frames > 0 {
      input.late += cut
      input.first = skipped + cut
      input.left = length - skipped - cut
      input.next = start + Int64(cut)
    } else {
      // Lost audio is silence.
      input.known = max(input.known ?? .min, start + Int64(length))
    }
    unsafe inputs[index] = input
    if !hasBegun, cut < length - skipped { base = min(base ?? .max, start + Int64(cut)) }
    if input.holds { unsafe (packets + index).initialize(to: packet) }
  }

  /// Difference from the packet's position to the timeline's.
  private mutating func offset(of packet: borrowing Packet, _ skipped: Int, _ input: Input) -> Int64 {
    let position = packet.position &+ Int64(skipped)
    if let offset = input.offset, let known = input.known {
      let start = position &+ offset
      let restarts = start < known && packet.flags.contains(.discontinuity)
      guard restarts || start - known > Self.longestGap * Int64(rate) else { return offset }
      // A restarted source counts from 0 again; one with an implausible jump continues where it was.
      if !restarts { return known - position }
    }
    let time = packet.timestamp &+ .samples(Int64(skipped), rate: rate)
    if origin == nil { origin = time }
    return (self.position(of: time) ?? 0) - position
  }

  /// First position at which an input may still add audio that would begin at `start`.
  private func floor(for input: Input, _ start: Int64) -> Int64 {
    let lowest = hasBegun ? base ?? start : (front ?? start) - Int64(capacity)
    return max(lowest, input.known ?? .min)
  }

  /// Adds as much of the held packet as fits.
  private mutating func place(_ index: Int) {
    var input = unsafe inputs[index]
    let base = base ?? input.next
    let cut = Int(max(0, min(Int64(input.left), base - input.next)))
    input.late += cut
    input.skip(cut)
    let fits = Int(max(0, min(Int64(input.left), base + Int64(capacity) - input.next)))
    if fits > 0 { add(index, input, fits) }
    input.skip(fits)
    input.known = max(input.known ?? .min, input.next)
    unsafe inputs[index] = input
    if !input.holds { unsafe (packets + index).deinitialize(count: 1) }
  }

  private func add(_ index: Int, _ input: Input, _ frames: Int) {
    let channels = input.place.channels
    let samples = input.first * channels..<(input.first + frames) * channels
    switch input.place.sample {
    case .s16:
      let source = unsafe packets[index].samples(of: Int16.self).extracting(samples)
      add(input, frames) { Float(source[$0]) / 0x1p15 }
    case .f32:
      let source = unsafe packets[index].samples(of: Float.self).extracting(samples)
      // A NaN would stay in the sum.
      add(input, frames) { SampleMath.sanitized(source[$0]) }
    }
  }

  @inline(__always)
  private func add(_ input: Input, _ frames: Int, _ sample: (Int) -> Float) {
    let place = input.place
    var slot = slot(of: input.next)
    for frame in 0..<frames {
      for channel in 0..<place.count {
        let source = frame * place.channels + (place.channels == 1 ? 0 : channel)
        let target = slot * channels + place.first + channel
        // Not a compound assignment: the compiler generates invalid code for it here under ThreadSanitizer.
        unsafe line[target] = line[target] + sample(source)
      }
      slot += 1
      if slot == capacity { slot = 0 }
    }
  }

  private func slot(of position: Int64) -> Int {
    let rest = Int(position % Int64(capacity))
    return rest < 0 ? rest + capacity : rest
  }

  // MARK: Output

  /// Position after the last known sample of any input; nil before anything arrived.
  private var front: Int64? {
    var front: Int64?
    for index in 0..<count { if let known = unsafe inputs[index].known { front = max(front ?? .min, known) } }
    return front
  }

  /// The position up to which audio may be written: where every running input is known, or where the wait has expired.
  mutating func limit(isLast: Bool, _ ports: inout Ports) -> Int64? {
    guard let front, let base else { return nil }
    wait.note(front, at: ports.now)
    var limit = front
    for index in 0..<count where !isLast {
      if unsafe !inputs[index].holds && ports.isOver(index) { continue }
      limit = unsafe min(limit, inputs[index].known ?? .min)
    }
    return max(base, limit, wait.expired(at: ports.now))
  }

  /// When the wait for the present missing audio expires; nil if nothing waits.
  func nextExpiry() -> Nanoseconds? { base.flatMap { wait.nextExpiry(beyond: $0) } }

  /// Contiguous frames in memory from `base` on.
  var contiguous: Int { base.map { capacity - slot(of: $0) } ?? 0 }

  /// The next frames to write, interleaved; not more than `contiguous`.
  func frames(_ count: Int) -> UnsafeMutableBufferPointer<Float> {
    let start = (base.map { slot(of: $0) } ?? 0) * channels
    return unsafe UnsafeMutableBufferPointer(rebasing: line[start..<start + count * channels])
  }

  /// Removes the next frames.
  mutating func drop(_ count: Int) {
    guard let start = base, count > 0 else { return }
    unsafe frames(count).update(repeating: 0)
    base = start + Int64(count)
    hasBegun = true
  }

  /// Returns and clears the number of late frames of an input.
  mutating func takeLate(_ index: Int) -> Int {
    let late = unsafe inputs[index].late
    unsafe inputs[index].late = 0
    return late
  }
}
