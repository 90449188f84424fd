internal import CMillraceSys
public import MillraceCore

/// `audio.capture`: records from a microphone.
///
/// - Output `out`: s16 or f32 in packets of `frame` ms. Position 0 is the first frame recorded after the graph started. The timestamp is
///   the time at which the packet's first frame was recorded, on the device's clock: a line fitted through the arrival times of the
///   device's blocks, so scheduling jitter does not show. It excludes the device's own latency before it delivers audio.
/// - Lost audio leaves a gap: positions jump, and the packet is marked `discontinuity`. Audio is lost when the graph does not keep up
///   (event `overrun`) and while a device is gone (`deviceLost`, `deviceBack`).
/// - The device `null` delivers silence and follows a virtual clock. `file` ends with its file.
/// - **Another device.** `device` may be set while the graph runs. The device is opened on a thread of its own while the present one records, and
///   replaces it once it records (`deviceChanged`). Its first packet, marked `discontinuity`, is placed by its time behind the last one of the
///   present device: positions never decrease, and less than two packets are missing. A device that cannot be opened, or is open but delivers
///   nothing for five seconds, changes nothing (`error`), and neither does the name of the present device. A device that has disappeared can be
///   replaced as well, which ends its loss (`deviceBack`). The device `null` runs on the graph's clock and can neither be replaced nor replace
///   another. A node that is restarted records from the device that was set last, or from its graph's own if that one cannot be used (`error`).
/// - A device that cannot be opened makes the plan fail, with an error that lists the available ones.
/// - Latency: `frame`, plus up to `interval`.
public struct AudioCapture: ~Copyable, Node {
  enum Event: Int {
    case deviceLost, deviceBack, overrun, deviceClock, deviceChanged, error
  }

  private static let deviceParameter = contract.parameterIndex("device")

  /// Interval between `deviceClock` events, in nanoseconds.
  static let clockInterval: Nanoseconds = 10_000_000_000

  /// The device and its line; nil for the device `null`.
  var open: OpenCapture?
  /// Opens the device that takes this one's place.
  let opener: CaptureOpener
  package var change: DeviceChange<OpenCapture>
  /// True until the first block of another device was emitted.
  var hasMoved = false
  /// The position behind the last packet, and its time on CLOCK_MONOTONIC; nil before the first.
  var end: (position: Int64, time: Nanoseconds)?
  /// When the device disappeared; nil while it is there.
  var lostAt: Nanoseconds?
  let rate: Int
  private let frames: Int
  private let frameBytes: Int
  /// Nanoseconds per frame of the device `null`.
  private let period: Double
  /// CLOCK_MONOTONIC minus the graph's clock; nil before the first call.
  private var offset: Nanoseconds?
  private var start: Nanoseconds?
  /// The line's position of the first frame emitted.
  var origin: Int64?
  private var position: Int64 = 0
  private var nextClock: Nanoseconds = AudioCapture.clockInterval
  private var losses = 0
  private var overruns = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup) { (settings, line, shape) throws(NodeProblem) in
      try AudioDevices.open(settings, for: line, shape)
    }
  }

  /// As above; tests script the devices.
  init(_ setup: borrowing NodeSetup, start: @escaping CaptureOpener.Start) throws(NodeProblem) {
    guard let shape = setup.outputs[0].shape, case .pcm(let rate, let channels, let sample) = shape.format,
      let frames = shape.frames
    else { throw NodeProblem("\"\(setup.name)\" produces audio only") }
    let values = setup.parameters
    let skew = values.number("skew")
    let opener = CaptureOpener(
      shape: CaptureFormat(rate: rate, channels: channels, sample: sample), frames: frames,
      path: values.has("path") ? values.string("path") : "",
      interval: Nanoseconds(values.number("interval") * 1e6), skew: skew, waker: setup.waker, start: start)
    let (isVirtual, initial) = (setup.isVirtual, setup.initial.string("device"))
    let (open, change) = try DeviceChange<OpenCapture>.begin(
      with: values.string("device"), insteadOf: initial
    ) { (device) throws(NodeProblem) -> OpenCapture? in
      try opener.open(DeviceName.first(device, initial: initial, path: opener.path, isVirtual: isVirtual))
    }
    // Nothing below may throw.
    self.open = open
    self.opener = opener
    self.change = change
    self.rate = rate
    self.frames = frames
    frameBytes = channels * sample.byteCount
    period = 1e9 / (Double(rate) * (1 + skew * 1e-6))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let first = open?.line else { return try makeSilence(&ports) }
    let offset = begin(first, &ports)
    if change.isPending { changeDevice(&ports) }
    let line = open?.line ?? first
    postDeviceEvents(line, &ports)
    join(line)
    guard let block = line.front else { return wait(line, &ports) }
    var packet = try ports.makePacket(bytes: frames * frameBytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    let source = unsafe line.bytes
    unsafe target.withUnsafeMutableBytes {
      unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: source, count: frames * frameBytes))
    }
    let start = origin ?? block.position
    if (block.isDiscontinuous || hasMoved) && origin != nil { packet.flags.insert(.discontinuity) }
    origin = start
    hasMoved = false
    packet.position = block.position &- start
    end = (packet.position &+ Int64(frames), block.time &+ .samples(Int64(frames), rate: rate))
    packet.timestamp = block.time &- offset
    packet.duration = frames
    line.drop()
    ports.emit(packet)
    return line.front != nil || line.isOver ? .again : .done
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(Self.deviceParameter, .string(let name)) = message else { return }
    setDevice(name, &ports)
  }

  /// Waits for the device, or for another one that may still take its place.
  private func wait(_ line: CaptureLine, _ ports: inout Ports) -> Outcome {
    if line.isOver && !change.isPending { return .ended }
    if let deadline = change.deadline { ports.wake(at: deadline) }
    return .done
  }

  /// Discards what was recorded before the graph started: keeping it would delay the stream forever.
  private mutating func begin(_ line: CaptureLine, _ ports: inout Ports) -> Nanoseconds {
    if let offset { return offset }
    while line.front != nil { line.drop() }
    _ = line.takeOverrun()
    let offset = millrace_monotonic_ns() &- ports.now
    self.offset = offset
    nextClock = ports.now &+ Self.clockInterval
    return offset
  }

  private mutating func makeSilence(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if change.isPending { changeDevice(&ports) }
    let begin = start ?? ports.now
    start = begin
    let due = time(of: position + Int64(frames), begin)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: frames * frameBytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    for index in target.indices { target[index] = 0 }
    packet.position = position
    packet.timestamp = time(of: position, begin)
    packet.duration = frames
    position += Int64(frames)
    ports.emit(packet)
    ports.wake(at: time(of: position + Int64(frames), begin))
    return .done
  }

  private func time(of position: Int64, _ begin: Nanoseconds) -> Nanoseconds {
    begin &+ Nanoseconds((Double(position) * period).rounded())
  }

  // MARK: Events

  /// Posts that the device disappeared.
  package mutating func postLost(_ ports: inout Ports) {
    losses += 1
    lostAt = ports.now
    let count = losses
    ports.post(Event.deviceLost.rawValue) { $0.field("count", count) }
  }

  /// Posts that a device records again after so many nanoseconds.
  mutating func postBack(_ away: Nanoseconds, _ ports: inout Ports) {
    lostAt = nil
    ports.post(Event.deviceBack.rawValue) { $0.field("ms", Double(away) / 1e6, decimals: 1) }
  }

  mutating func postDeviceEvents(_ line: CaptureLine, _ ports: inout Ports) {
    while let news = line.nextEvent() {
      switch news {
      case .lost: postLost(&ports)
      case .back(let away): postBack(away, &ports)
      }
    }
    let lost = line.takeOverrun()
    if lost > 0 {
      overruns += 1
      let (milliseconds, count) = (Double(lost) * 1_000 / Double(rate), overruns)
      ports.post(Event.overrun.rawValue) { event in
        event.field("ms", milliseconds, decimals: 1)
        event.field("count", count)
      }
    }
    guard ports.now >= nextClock else { return }
    nextClock = ports.now &+ Self.clockInterval
    let skew = line.skew
    ports.post(Event.deviceClock.rawValue) { $0.field("ppm", skew, decimals: 1) }
  }
}
