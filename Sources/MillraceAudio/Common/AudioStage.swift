internal import MillraceCore
internal import MillraceDSP

/// A processor of interleaved float audio, in place, with a fixed latency.
protocol AudioStage: ~Copyable {
  /// Output latency in frames.
  var latencyFrames: Int { get }

  /// Clears the stream.
  mutating func reset()

  /// Processes whole frames in place; the output is delayed by `latencyFrames`.
  mutating func process(_ samples: inout MutableSpan<Float>)
}

/// Passes packets through a stage so that every sample keeps its position and its time.
///
/// Output begins at the position at which the input begins, so the first packets are shorter, or missing, by the latency; what the
/// stage holds at the end, or at a break in the stream, is emitted as a packet of its own. The same happens at the end of an
/// utterance, with the mark, but the stage then keeps what it has learnt. All memory is allocated in `init`.
@safe
struct DelayedStream<Stage: AudioStage & ~Copyable>: ~Copyable {
  var stage: Stage
  private let rate: Int
  private let channels: Int
  private let sample: SampleType
  private let frameBytes: Int
  private let longest: Int
  /// Interleaved.
  private let floats: UnsafeMutableBufferPointer<Float>
  /// Frames still to discard before output begins.
  private var runIn = 0
  /// Position after the newest frame of the stream; nil: none has started.
  private var end: Int64?
  private var endTime: Nanoseconds = 0
  private var flags: PacketFlags = []
  private var reply = HeldReply.none
  private var startsBroken = false

  /// Most output packets for one input packet: at a break, when the packet after it ends its utterance.
  static func burst(latency: Int, frames: Int) -> Int { (latency + frames - 1) / frames * 2 + 1 }

  init(_ stage: consuming Stage, shape: OutputShape) {
    guard case .pcm(let rate, let channels, let sample) = shape.format, let frames = shape.frames else {
      fatalError("only audio passes a stage")
    }
    (self.rate, self.channels, self.sample, longest) = (rate, channels, sample, frames)
    frameBytes = channels * sample.byteCount
    unsafe floats = .allocate(capacity: frames * channels)
    unsafe floats.initialize(repeating: 0)
    self.stage = stage
  }

  deinit { unsafe floats.deallocate() }

  /// Takes a packet, and emits the output that becomes available.
  mutating func process(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    if !packet.isEndMarker {
      try take(packet, &ports)
    } else if packet.generation != reply.generation {
      try flush(&ports)
    }
    if packet.flags.contains(.endOfUtterance) { try end(with: packet, &ports) }
  }

  private mutating func take(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    let frames = Int(packet.byteCount) / frameBytes
    if !follows(packet, frames: frames) {
      let jumps = packet.position != end
      try flush(&ports)
      startsBroken = startsBroken || jumps
    }
    guard frames > 0 else {
      startsBroken = true
      return
    }
    if end == nil { begin(packet) }
    let position = (end ?? packet.position) &- Int64(stage.latencyFrames)
    let time = packet.timestamp &- .samples(Int64(stage.latencyFrames), rate: rate)
    end = (end ?? packet.position) &+ Int64(frames)
    endTime = packet.timestamp &+ .samples(Int64(frames), rate: rate)
    flags = packet.flags.subtracting(.discontinuity).subtracting(.endOfUtterance)
    reply.follow(packet)
    read(packet, frames: frames)
    try send(frames, position: position, time: time, &ports)
  }

  /// Emits what the stage holds and clears the stream.
  mutating func flush(_ ports: inout Ports) throws(NodeFault) {
    try pushOut(&ports)
    forget()
  }

  /// Emits what the stage holds of an utterance that a packet ends, the last of it with the mark.
  private mutating func end(with packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    if end != nil && stage.latencyFrames > 0 {
      try pushOut(ending: true, &ports)
    } else {
      try ports.emitEnd(of: packet, rate: rate)
    }
    // What follows has its own run-in; the stage holds nothing more of this.
    end = nil
  }

  /// Flushes the stage with silence.
  private mutating func pushOut(ending: Bool = false, _ ports: inout Ports) throws(NodeFault) {
    guard let end else { return }
    var left = stage.latencyFrames
    while left > 0 {
      let frames = min(left, longest)
      unsafe floats.update(repeating: 0)
      let position = end &- Int64(left)
      if ending && frames == left { flags.insert(.endOfUtterance) }
      try send(
        frames, position: position, time: endTime &- .samples(Int64(left), rate: rate), &ports)
      left -= frames
    }
  }

  /// Clears the stream and what it holds.
  mutating func forget() {
    guard end != nil else { return }
    stage.reset()
    end = nil
  }

  private func follows(_ packet: borrowing Packet, frames: Int) -> Bool {
    guard let end else { return true }
    return frames > 0 && packet.position == end && packet.generation == reply.generation
      && !packet.flags.contains(.discontinuity)
  }

  private mutating func begin(_ packet: borrowing Packet) {
    runIn = stage.latencyFrames
    startsBroken = startsBroken || packet.flags.contains(.discontinuity)
  }

  private func read(_ packet: borrowing Packet, frames: Int) {
    var target = unsafe MutableSpan(_unsafeElements: floats.extracting(0..<frames * channels))
    switch sample {
    case .s16:
      SampleConversion.convert(packet.samples(of: Int16.self).extracting(0..<target.count), into: &target)
    case .f32:
      let source = packet.samples(of: Float.self)
      for index in target.indices { target[index] = source[index] }
    }
  }

  /// Passes the first `frames` of the work memory through the stage and emits the result without the run-in.
  private mutating func send(
    _ frames: Int, position: Int64, time: Nanoseconds, _ ports: inout Ports
  ) throws(NodeFault) {
    var changed = unsafe MutableSpan(_unsafeElements: floats.extracting(0..<frames * channels))
    stage.process(&changed)
    let skipped = min(runIn, frames)
    runIn -= skipped
    guard frames > skipped else { return }
    var output = try ports.makePacket(bytes: (frames - skipped) * frameBytes, of: reply)
    output.position = position &+ Int64(skipped)
    output.timestamp = time &+ .samples(Int64(skipped), rate: rate)
    output.duration = frames - skipped
    output.flags = startsBroken ? flags.union(.discontinuity) : flags
    startsBroken = false
    let source = changed.span.extracting(skipped * channels..<frames * channels)
    switch sample {
    case .s16:
      var target = output.mutableSamples(of: Int16.self)
      SampleConversion.convert(source, into: &target)
    case .f32:
      var target = output.mutableSamples(of: Float.self)
      for index in target.indices { target[index] = source[index] }
    }
    ports.emit(output)
  }
}
