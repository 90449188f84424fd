internal import MillraceCore
internal import MillraceDSP

/// The sound of several inputs on one line of samples, until it is written.
///
/// Positions count from the first sample that came. An input's first packet is placed by its timestamp, rounded to a sample;
/// those after it by their positions alone. What has left the line cannot be added to: it is counted as late. Memory is taken
/// in `init`: the patience and the longest packet, in floats.
@safe
struct RecordingTimeline: ~Copyable {
  /// One input's place on the line.
  private struct Input {
    let place: RecordingLayout.Place
    /// What a packet's position lacks to the line's; nil before the first packet.
    var offset: Int64?
    /// Position up to which everything of it is known; nil: nothing came yet.
    var known: Int64?
    /// Of the packet held: frames not placed yet, the first of them in the packet, and its position.
    var left = 0
    var first = 0
    var next: Int64 = 0
    /// Frames cut since the last report.
    var late = 0

    var holds: Bool { left > 0 }

    /// Leaves out frames of the packet held.
    mutating func skip(_ count: Int) {
      first += count
      next += Int64(count)
      left -= count
    }
  }

  /// Longest silence inside an input, in seconds; a position further ahead is taken for a mistake, and follows on directly.
  static let longestGap: Int64 = 3_600

  let rate: Int
  /// Channels of the line.
  let channels: Int
  private let capacity: Int
  private let inputs: UnsafeMutableBufferPointer<Input>
  private let packets: UnsafeMutablePointer<Packet>
  private let line: UnsafeMutableBufferPointer<Float>
  private var patience: Patience
  /// Graph time of position 0.
  private var origin: Nanoseconds?
  /// The next position to leave; before the first has left it may still move down.
  private(set) var base: Int64?
  private var hasBegun = false

  init(_ layout: RecordingLayout, rate: Int, patience: Nanoseconds, longest: Int) {
    self.rate = rate
    self.patience = Patience(patience)
    channels = layout.channels
    // Half as much again, for what arrives while the patience runs out.
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

  /// Inputs, linked or not.
  var count: Int { unsafe inputs.count }

  /// The position that belongs to a graph time; nil before anything came.
  func position(of time: Nanoseconds) -> Int64? {
    origin.map { Int64((Double(time &- $0) * Double(rate) / 1e9).rounded()) }
  }

  // MARK: In

  /// Takes packets as long as the line has room for them.
  mutating func take(_ ports: inout Ports) {
    for index in 0..<count {
      while true {
        if unsafe inputs[index].holds { place(index) }
        guard unsafe !inputs[index].holds, let packet = ports.next(index) else { break }
        admit(packet, index)
      }
    }
  }

  /// Finds a packet's place and holds what of it can still be recorded.
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
      // What was lost is silence.
      input.known = max(input.known ?? .min, start + Int64(length))
    }
    unsafe inputs[index] = input
    if !hasBegun, cut < length - skipped { base = min(base ?? .max, start + Int64(cut)) }
    if input.holds { unsafe (packets + index).initialize(to: packet) }
  }

  /// What the packet's position lacks to its place on the line.
  private mutating func offset(of packet: borrowing Packet, _ skipped: Int, _ input: Input) -> Int64 {
    let position = packet.position &+ Int64(skipped)
    if let offset = input.offset, let known = input.known {
      let start = position &+ offset
      let restarts = start < known && packet.flags.contains(.discontinuity)
      guard restarts || start - known > Self.longestGap * Int64(rate) else { return offset }
      // A source that was made anew counts from 0 again; one that jumps out of sight goes on where it was.
      if !restarts { return known - position }
    }
    let time = packet.timestamp &+ .samples(Int64(skipped), rate: rate)
    if origin == nil { origin = time }
    return (self.position(of: time) ?? 0) - position
  }

  /// First position at which an input may still add something that would begin at `start`.
  private func floor(for input: Input, _ start: Int64) -> Int64 {
    let lowest = hasBegun ? base ?? start : (front ?? start) - Int64(capacity)
    return max(lowest, input.known ?? .min)
  }

  /// Adds what fits of the packet held.
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
      // What is no sound would stay in the sum.
      add(input, frames) { SampleMath.sound(source[$0]) }
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
        // Written out: of an operator that assigns, the compiler makes invalid code here under the thread sanitizer.
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

  // MARK: Out

  /// Position after the last sample that is known of any input; nil before anything came.
  private var front: Int64? {
    var front: Int64?
    for index in 0..<count { if let known = unsafe inputs[index].known { front = max(front ?? .min, known) } }
    return front
  }

  /// Up to which position may leave now: where every input that still runs is known, or all patience is used up.
  mutating func limit(isLast: Bool, _ ports: inout Ports) -> Int64? {
    guard let front, let base else { return nil }
    patience.note(front, at: ports.now)
    var limit = front
    for index in 0..<count where !isLast {
      if unsafe !inputs[index].holds && ports.isOver(index) { continue }
      limit = unsafe min(limit, inputs[index].known ?? .min)
    }
    return max(base, limit, patience.over(at: ports.now))
  }

  /// When the patience with what is missing now ends; nil when nothing waits.
  func nextExpiry() -> Nanoseconds? { base.flatMap { patience.nextExpiry(beyond: $0) } }

  /// Frames that lie in one piece from `base` on.
  var contiguous: Int { base.map { capacity - slot(of: $0) } ?? 0 }

  /// The next frames to leave, interleaved; not more than `contiguous`.
  func frames(_ count: Int) -> UnsafeMutableBufferPointer<Float> {
    let start = (base.map { slot(of: $0) } ?? 0) * channels
    return unsafe UnsafeMutableBufferPointer(rebasing: line[start..<start + count * channels])
  }

  /// Lets the next frames go.
  mutating func drop(_ count: Int) {
    guard let start = base, count > 0 else { return }
    unsafe frames(count).update(repeating: 0)
    base = start + Int64(count)
    hasBegun = true
  }

  /// Takes the count of frames an input was late with since the last look.
  mutating func takeLate(_ index: Int) -> Int {
    let late = unsafe inputs[index].late
    unsafe inputs[index].late = 0
    return late
  }
}
