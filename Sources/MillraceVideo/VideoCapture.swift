internal import Glibc
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
/// - Latency: up to one picture. Bulk lane.
@safe
public struct VideoCapture: ~Copyable, Node {
  public static let contract = NodeContract(
    "video.capture", "captures a screen or a camera, or generates test pictures",
    outputs: [PortContract("out", .video(), text: "the captured pictures")],
    parameters: [
      ParameterContract(
        "source", .choice(["screen", "camera", "test"]), default: "screen", text: "what to capture"),
      ParameterContract(
        "device", .string,
        text: "the X display, such as `:0` (default: DISPLAY), or the camera (default: /dev/video0)"),
      ParameterContract(
        "width", .integer(1...7_680), unit: "px", default: 1_280, text: "output width"),
      ParameterContract(
        "height", .integer(1...4_320), unit: "px", default: 720, text: "output height"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30, text: "frame rate"),
      ParameterContract(
        "left", .integer(0...32_767), unit: "px", default: 0, text: "left edge of the screen region"),
      ParameterContract(
        "top", .integer(0...32_767), unit: "px", default: 0, text: "top edge of the screen region"),
      ParameterContract(
        "pointer", .bool, default: true, text: "include the mouse pointer when capturing a screen"),
      ParameterContract("pixel", PixelType.choice, default: "i420", text: "output pixel format"),
      ParameterContract(
        "stall", .number(100...3_600_000), unit: "ms", default: 2_000,
        text: "time without a picture after which `stalled` is posted"),
    ],
    events: [
      EventContract("stalled", text: "no picture arrived for `ms`"),
      EventContract("resumed", text: "pictures arrive again: after `ms`"),
      EventContract(
        "damaged",
        text:
          "pictures of a camera could not be decoded and were dropped: `count` so far; at most once a second"
      ),
    ],
    lane: .bulk, budget: 50_000, drive: .itself,
    examples: [
      #"{ "type": "video.capture", "width": 1920, "height": 1080, "rate": 15 }"#,
      #"{ "type": "video.capture", "source": "camera", "device": "/dev/video0" }"#,
    ],
    resolve: { resolution in
      let values = resolution.parameters
      resolution.pacing = values.string("source") == "test" ? .paced : .live
      resolution.outputs["out"] = .video(
        width: values.integer("width"), height: values.integer("height"),
        pixel: PixelType(rawValue: values.string("pixel")) ?? .i420, rate: FrameRate(values.integer("rate")))
    })

  private enum Event: Int {
    case stalled, resumed, damaged
  }

  /// Test pictures later than this are skipped, unless none was emitted for that long.
  private static let longestDelay = Nanoseconds.milliseconds(200)

  /// The source of pictures.
  private enum Source {
    case device(CaptureThread)
    case test(VideoFileReader)
  }

  private let source: Source
  private let scaler: PictureScaler
  private let bytes: Int
  private let name: String
  private let stall: Nanoseconds
  private let rate: FrameRate
  private var start: Nanoseconds?
  private var times = GraphTimes()
  /// When the last picture arrived, or the node started to wait.
  private var lastCame: Nanoseconds?
  private var hasStalled = false
  private var count: Int64 = 0
  /// Test pictures so far, including skipped ones.
  private var madeCount: Int64 = 0
  private var damaged = CountedEvent()
  private let words = LastWords()

  /// Why the device was lost; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, let pixel, let rate) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces pictures only")
    }
    let place = try Self.place(values)
    let source: Source
    if values.string("source") == "test" {
      source = .test(try VideoFileReader(place, threads: 1, sound: nil))
    } else {
      guard !setup.isVirtual else {
        throw NodeProblem(
          "\(place.name) cannot follow a virtual clock", parameter: "source",
          cure: "run the graph on the real-time clock, or use `test` pictures")
      }
      source = .device(try CaptureThread.start(place, waker: setup.waker))
    }
    self.source = source
    self.rate = rate
    name = place.name
    stall = values.nanoseconds("stall")
    scaler = PictureScaler(to: pixel, width: width, height: height)
    bytes = pixel.byteCount(width: width, height: height)
  }

  deinit { if case .device(let thread) = source { thread.stop() } }

  /// The input for the libraries to open.
  private static func place(_ values: ParameterValues) throws(NodeProblem) -> Demuxer.Source {
    let (width, height) = (values.integer("width"), values.integer("height"))
    let rate = values.integer("rate")
    switch values.string("source") {
    case "screen":
      let given = values.has("device") ? values.string("device") : Self.environment("DISPLAY")
      guard let display = given, !display.isEmpty else {
        throw NodeProblem(
          "no display: neither `device` nor DISPLAY is set", parameter: "device",
          cure: "run inside an X session, or set a display such as \":0\"")
      }
      return Demuxer.Source(
        device: "x11grab", url: "\(display)+\(values.integer("left")),\(values.integer("top"))",
        options: [
          "video_size": "\(width)x\(height)", "framerate": "\(rate)",
          "draw_mouse": values.bool("pointer") ? "1" : "0",
        ], name: "the display \"\(display)\"",
        cure: "check that it exists, that you have access, and that the region lies on the screen")
    case "camera":
      let device = values.has("device") ? values.string("device") : "/dev/video0"
      guard unsafe access(device, F_OK) == 0 else {
        throw NodeProblem(
          "no camera \"\(device)\"", parameter: "device",
          cure: "connect a camera, or use another device: ls /dev/video*")
      }
      return Demuxer.Source(
        device: "v4l2", url: device,
        options: ["video_size": "\(width)x\(height)", "framerate": "\(rate)", "timestamps": "abs"],
        name: "the camera \"\(device)\"",
        cure: "use another device (ls /dev/video*), or a supported size and rate: v4l2-ctl --list-formats-ext"
      )
    default:
      // The filter does not support a single row or column; the picture is scaled down from a larger one.
      let size = "\(max(2, width))x\(max(2, height))"
      return Demuxer.Source(
        device: "lavfi", url: "testsrc2=size=\(size):rate=\(rate)", name: "the test picture")
    }
  }

  private static func environment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    switch source {
    case .test(let video): try processTest(video, &ports)
    case .device(let thread): try processDevice(thread, &ports)
    }
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

  private mutating func processDevice(
    _ thread: CaptureThread, _ ports: inout Ports
  ) throws(NodeFault) -> Outcome {
    times.note(ports.now, monotonic: Clock(.realtime).now)
    let update = thread.fetch()
    if let picture = update.newest {
      guard unsafe scaler.scale(picture.frame) else { throw NodeFault(.library) }
      noteArrival(&ports)
      try emit(at: times.time(picture.time), &ports)
    }
    if damaged.isDue(update.damage, at: ports.now, isLast: update.ending != nil) {
      ports.post(Event.damaged.rawValue) { $0.field("count", update.damage) }
    }
    if update.newest == nil, let ending = update.ending {
      words.text = ending
      throw NodeFault(.gone)
    }
    watchForStall(&ports)
    return update.ending == nil ? .done : .again
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
    guard !hasStalled else { return }
    if ports.now &- since >= stall {
      hasStalled = true
      let gap = Double(ports.now &- since) / 1e6
      ports.post(Event.stalled.rawValue) { $0.field("ms", gap, decimals: 0) }
    } else {
      ports.wake(at: since &+ stall)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost \(name): \(words.text ?? "it delivers no more pictures")"
    case .library: "pictures of \(name) have an unsupported pixel format"
    default: nil
    }
  }
}
