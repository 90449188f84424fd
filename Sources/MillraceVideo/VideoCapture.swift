public import MillraceCore

/// `video.capture`: captures a screen or a camera, or generates test pictures.
///
/// - Output `out`: planar 4:2:0 or the format set by `pixel`, `width` by `height`; position counts pictures, the timestamp is the time of capture.
///   Pictures of a camera with another size are scaled.
/// - `screen` is an X display (x11grab): a region of it at `left`, `top`, which has to lie on the screen. `camera` is a V4L2 device. `test` is
///   FFmpeg's moving test picture (testsrc2), timed by the graph's clock and identical in every run.
/// - Screen and camera are read on their own thread; a picture that the graph does not take in time is superseded by the next one. Test
///   pictures that are 200 ms late are skipped. Devices cannot follow a virtual clock. Without a picture for `stall`, event
///   `stalled` is posted, and `resumed` when pictures return; a lost device fails the node.
/// - **Another device.** `device` may be set while the graph runs: another display at the same region, or another camera. It is opened on a
///   thread of its own while the present one is captured, and replaces it with its first picture (`deviceChanged`). Positions and times
///   continue. A device that cannot be captured, or delivers no picture for five seconds, changes nothing (`error`), and neither does
///   the name of the present device. A node that is restarted captures the device that was set last, or its graph's own if that one cannot be
///   captured (`error`).
/// - Latency: up to one picture. Bulk lane.
@safe
public struct VideoCapture: ~Copyable, Node {
  enum Event: Int {
    case stalled, resumed, damaged, deviceChanged, error
  }

  private static let deviceParameter = contract.parameterIndex("device")

  /// Test pictures later than this are skipped, unless none was emitted for that long.
  private static let longestDelay = Nanoseconds.milliseconds(200)

  /// The source of pictures.
  enum Source {
    case device(CaptureDevice)
    case test(VideoFileReader)
  }

  var source: Source
  let place: CapturePlace
  let waker: Waker
  package var change: DeviceChange<CaptureDevice>
  /// True until the first picture of another device was emitted.
  var hasMoved = false
  private let scaler: PictureScaler
  private let bytes: Int
  private let stall: Nanoseconds
  private let rate: FrameRate
  private var start: Nanoseconds?
  private var times = GraphTimes()
  /// When the last picture arrived, or the node started to wait.
  private var lastCame: Nanoseconds?
  private var hasStalled = false
  private var count: Int64 = 0
  /// Time of the last picture.
  private var lastTime = Nanoseconds.min
  /// Test pictures so far, including skipped ones.
  private var madeCount: Int64 = 0
  var damaged = CountedEvent()
  private let words = LastWords()

  /// The name of the source in messages.
  private var sourceName: String {
    if case .device(let device) = source { device.name } else { "the test picture" }
  }

  /// Which device was lost, and why; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, let pixel, let rate) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces pictures only")
    }
    let place = CapturePlace(values)
    let (isVirtual, waker) = (setup.isVirtual, setup.waker)
    let (source, change) = try DeviceChange<CaptureDevice>.begin(
      with: place.device(values), insteadOf: place.device(setup.initial)
    ) { (device) throws(NodeProblem) -> Source in
      try Self.open(place.input(from: device), place.kind, isVirtual: isVirtual, waker: waker)
    }
    self.source = source
    self.place = place
    self.waker = waker
    self.change = change
    self.rate = rate
    stall = values.nanoseconds("stall")
    scaler = PictureScaler(to: pixel, width: width, height: height)
    bytes = pixel.byteCount(width: width, height: height)
  }

  private static func open(
    _ input: Demuxer.Source, _ kind: CapturePlace.Kind, isVirtual: Bool, waker: Waker
  ) throws(NodeProblem) -> Source {
    if kind == .test { return .test(try VideoFileReader(input, threads: 1, sound: nil)) }
    guard !isVirtual else {
      throw NodeProblem(
        "\(input.name) cannot follow a virtual clock", parameter: "source",
        cure: "run the graph on the real-time clock, or use `test` pictures")
    }
    return .device(try CaptureDevice(input, waker: waker))
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    switch source {
    case .test(let video): try processTest(video, &ports)
    case .device: try processDevice(&ports)
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(Self.deviceParameter, .string(let name)) = message else { return }
    setDevice(name, &ports)
  }

  private mutating func processTest(_ video: VideoFileReader, _ ports: inout Ports) throws(NodeFault)
    -> Outcome
  {
    let begin = start ?? ports.now
    start = begin
    guard video.pictureTime != nil, let pictures = video.pictures else { return .ended }
    let due = begin &+ rate.time(ofPictures: madeCount)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    // An overloaded machine would otherwise fall behind permanently.
    let isLate = ports.now &- due > Self.longestDelay
    let isOver = isLate && lastCame.map { ports.now &- $0 < Self.longestDelay } ?? false
    if !isOver {
      guard unsafe scaler.scale(UnsafePointer(pictures.decoder.frame)) else { throw NodeFault(.library) }
      lastCame = ports.now
      try emit(at: due, &ports)
    }
    madeCount += 1
    try video.advancePicture()
    return .again
  }

  private mutating func processDevice(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    times.note(ports.now, monotonic: Clock(.realtime).now)
    if change.isPending { changeDevice(&ports) }
    guard case .device(let device) = source else { return .done }
    let update = device.thread.fetch()
    // Of another device, one that was captured before the last picture of the device before comes too late.
    if let picture = update.newest, !hasMoved || times.time(picture.time) > lastTime {
      guard unsafe scaler.scale(picture.frame) else { throw NodeFault(.library) }
      noteArrival(&ports)
      try emit(at: times.time(picture.time), &ports)
    }
    postDamage(update.damage, isLast: update.ending != nil, &ports)
    // Another device may still take the place of one that was lost.
    if update.newest == nil, !change.isPending, let ending = update.ending {
      words.text = "\(device.name): \(ending)"
      throw NodeFault(.gone)
    }
    watchForStall(&ports)
    return update.ending == nil || change.isPending ? .done : .again
  }

  mutating func postDamage(_ count: Int, isLast: Bool, _ ports: inout Ports) {
    guard damaged.isDue(count, at: ports.now, isLast: isLast) else { return }
    ports.post(Event.damaged.rawValue) { $0.field("count", count) }
  }

  private mutating func emit(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: bytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    scaler.copy(into: &target)
    packet.timestamp = time
    packet.position = count
    packet.duration = 1
    packet.flags.insert(.key)
    ports.emit(packet)
    count += 1
    lastTime = time
    hasMoved = false
  }

  // MARK: Stalls

  private mutating func noteArrival(_ ports: inout Ports) {
    if hasStalled, let lastCame {
      let gap = Double(ports.now &- lastCame) / 1e6
      ports.post(Event.resumed.rawValue) { $0.field("ms", gap, decimals: 0) }
    }
    hasStalled = false
    lastCame = ports.now
  }

  private mutating func watchForStall(_ ports: inout Ports) {
    let since = lastCame ?? ports.now
    lastCame = since
    if !hasStalled, ports.now &- since >= stall {
      hasStalled = true
      let gap = Double(ports.now &- since) / 1e6
      ports.post(Event.stalled.rawValue) { $0.field("ms", gap, decimals: 0) }
    }
    let due = min(hasStalled ? .max : since &+ stall, change.deadline ?? .max)
    if due != .max { ports.wake(at: due) }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost \(words.text ?? "a device")"
    case .library: "pictures of \(sourceName) have an unsupported pixel format"
    default: nil
    }
  }
}
