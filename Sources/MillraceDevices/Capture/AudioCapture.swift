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
/// - A device that cannot be opened makes the plan fail, with an error that lists the available ones.
/// - Latency: `frame`, plus up to `interval`.
public struct AudioCapture: ~Copyable, Node {
  private enum Event: Int {
    case deviceLost, deviceBack, overrun, deviceClock
  }

  /// Interval between `deviceClock` events, in nanoseconds.
  static let clockInterval: Nanoseconds = 10_000_000_000

  /// nil for the device `null`.
  private let line: CaptureLine?
  private let device: DeviceHandle?
  private let rate: Int
  private let frames: Int
  private let frameBytes: Int
  /// Nanoseconds per frame of the device `null`.
  private let period: Double
  /// CLOCK_MONOTONIC minus the graph's clock; nil before the first call.
  private var offset: Nanoseconds?
  private var start: Nanoseconds?
  /// The line's position of the first frame emitted.
  private var origin: Int64?
  private var position: Int64 = 0
  private var nextClock: Nanoseconds = AudioCapture.clockInterval
  private var losses = 0
  private var overruns = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.outputs[0].shape, case .pcm(let rate, let channels, let sample) = shape.format,
      let frames = shape.frames, let name = DeviceName(setup.parameters.string("device"))
    else { throw NodeProblem("\"\(setup.name)\" produces audio only") }
    let skew = setup.parameters.number("skew")
    let opened = try Self.open(
      name, setup, CaptureFormat(rate: rate, channels: channels, sample: sample), frames: frames)
    // Nothing below may throw.
    line = opened?.line
    device = opened?.device
    self.rate = rate
    self.frames = frames
    frameBytes = channels * sample.byteCount
    period = 1e9 / (Double(rate) * (1 + skew * 1e-6))
  }

  private static func open(
    _ name: DeviceName, _ setup: borrowing NodeSetup, _ shape: CaptureFormat, frames: Int
  ) throws(NodeProblem) -> (line: CaptureLine, device: DeviceHandle)? {
    try name.checkClock(setup.isVirtual)
    guard name.kind != .null else { return nil }
    let values = setup.parameters
    let line = CaptureLine(
      rate: shape.rate, frames: frames, frameBytes: shape.channels * shape.sample.byteCount,
      waker: setup.waker)
    let settings = DeviceSettings(
      name: name, path: values.has("path") ? values.string("path") : "",
      interval: Nanoseconds(values.number("interval") * 1e6), skew: values.number("skew"))
    return (line, DeviceHandle(try AudioDevices.open(settings, for: line, shape)))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let line else { return try makeSilence(&ports) }
    let offset = begin(line, &ports)
    postDeviceEvents(line, &ports)
    guard let block = line.front else { return line.isOver ? .ended : .done }
    var packet = try ports.makePacket(bytes: frames * frameBytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    let source = unsafe line.bytes
    unsafe target.withUnsafeMutableBytes {
      unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: source, count: frames * frameBytes))
    }
    let first = origin ?? block.position
    if block.isDiscontinuous && origin != nil { packet.flags.insert(.discontinuity) }
    origin = first
    packet.position = block.position &- first
    packet.timestamp = block.time &- offset
    packet.duration = frames
    line.drop()
    ports.emit(packet)
    return line.front != nil || line.isOver ? .again : .done
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

  private mutating func postDeviceEvents(_ line: CaptureLine, _ ports: inout Ports) {
    while let news = line.nextEvent() {
      switch news {
      case .lost:
        losses += 1
        let count = losses
        ports.post(Event.deviceLost.rawValue) { $0.field("count", count) }
      case .back(let away):
        ports.post(Event.deviceBack.rawValue) { $0.field("ms", Double(away) / 1e6, decimals: 1) }
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
