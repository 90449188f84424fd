internal import Glibc
public import MillraceCore

/// `video.capture`: pictures of a screen or a camera, or made-up ones.
///
/// - Out `out`: planar 4:2:0 or what `pixel` says, `width` by `height`; position counts pictures, the timestamp is when the device
///   took it. A camera that gives another size is scaled.
/// - `screen` is an X display (x11grab): a part of it at `left`, `top`, which has to lie on the screen. `camera` is a V4L2 device.
///   `test` is a moving picture of FFmpeg's (testsrc2), in time with the graph's clock and the same in every run.
/// - Screen and camera are read on a thread of their own; what the graph does not take in time is superseded by the next, and test
///   pictures that are 200 ms late are left out. Devices do not follow a virtual clock. When no picture comes for `stall`, event `stalled`, and `resumed` when they come again; a
///   device that is gone is a fault.
/// - Latency: up to one picture. Bulk lane.
@safe
public struct VideoCapture: ~Copyable, Node {
  public static let contract = NodeContract(
    "video.capture", "takes pictures of a screen or a camera, or makes test pictures",
    outputs: [PortContract("out", .video(), text: "the pictures")],
    parameters: [
      ParameterContract(
        "source", .choice(["screen", "camera", "test"]), default: "screen", text: "what to look at"),
      ParameterContract(
        "device", .string,
        text: "the X display, such as `:0` (default: DISPLAY), or the camera (default: /dev/video0)"),
      ParameterContract(
        "width", .integer(1...7_680), unit: "px", default: 1_280, text: "width of the pictures"),
      ParameterContract(
        "height", .integer(1...4_320), unit: "px", default: 720, text: "height of the pictures"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30, text: "pictures a second"),
      ParameterContract(
        "left", .integer(0...32_767), unit: "px", default: 0, text: "left edge of the part of a screen"),
      ParameterContract(
        "top", .integer(0...32_767), unit: "px", default: 0, text: "top edge of the part of a screen"),
      ParameterContract(
        "pointer", .bool, default: true, text: "true: the mouse pointer is part of a screen's picture"),
      ParameterContract("pixel", PixelType.choice, default: "i420", text: "pixel type to make"),
      ParameterContract(
        "stall", .number(100...3_600_000), unit: "ms", default: 2_000,
        text: "time without a picture that is told"),
    ],
    events: [
      EventContract("stalled", text: "no picture came for `ms`"),
      EventContract("resumed", text: "pictures come again: after `ms`"),
      EventContract(
        "damaged",
        text:
          "pictures of a camera could not be decoded and were left out: `count` so far; at most once a second"
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

  /// A test picture later than this is left out, unless none came for so long.
  private static let patience = Nanoseconds.milliseconds(200)

  /// Where pictures come from.
  private enum Source {
    case device(CaptureThread)
    case film(FilmReader)
  }

  private let source: Source
  private let scaler: PictureScaler
  private let bytes: Int
  private let name: String
  private let stall: Nanoseconds
  private let rate: FrameRate
  private var start: Nanoseconds?
  private var times = GraphTimes()
  /// When the last picture came, or the node began to wait.
  private var lastCame: Nanoseconds?
  private var hasStalled = false
  private var count: Int64 = 0
  /// Test pictures so far, those that were left out among them.
  private var madeCount: Int64 = 0
  private var damaged = CountedEvent()
  private let words = LastWords()

  /// Why a device is gone; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, let pixel, let rate) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" makes pictures only")
    }
    let place = try Self.place(values)
    let source: Source
    if values.string("source") == "test" {
      source = .film(try FilmReader(place, threads: 1, sound: nil))
    } else {
      guard !setup.isVirtual else {
        throw NodeProblem(
          "\(place.name) does not follow a virtual clock", parameter: "source",
          cure: "run the graph in real time, or take `test` pictures")
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

  /// What the libraries are to open.
  private static func place(_ values: ParameterValues) throws(NodeProblem) -> Demuxer.Place {
    let (width, height) = (values.integer("width"), values.integer("height"))
    let rate = values.integer("rate")
    switch values.string("source") {
    case "screen":
      let given = values.has("device") ? values.string("device") : Self.environment("DISPLAY")
      guard let display = given, !display.isEmpty else {
        throw NodeProblem(
          "there is no display: neither `device` nor DISPLAY names one", parameter: "device",
          cure: "run it inside an X session, or name a display such as \":0\"")
      }
      return Demuxer.Place(
        device: "x11grab", url: "\(display)+\(values.integer("left")),\(values.integer("top"))",
        options: [
          "video_size": "\(width)x\(height)", "framerate": "\(rate)",
          "draw_mouse": values.bool("pointer") ? "1" : "0",
        ], name: "the display \"\(display)\"",
        cure: "check that it is there, that you may use it, and that the part lies on the screen")
    case "camera":
      let device = values.has("device") ? values.string("device") : "/dev/video0"
      guard unsafe access(device, F_OK) == 0 else {
        throw NodeProblem(
          "there is no camera \"\(device)\"", parameter: "device",
          cure: "plug one in, or name another: ls /dev/video*")
      }
      return Demuxer.Place(
        device: "v4l2", url: device,
        options: ["video_size": "\(width)x\(height)", "framerate": "\(rate)", "timestamps": "abs"],
        name: "the camera \"\(device)\"",
        cure: "name another (ls /dev/video*), or a size and rate that it has: v4l2-ctl --list-formats-ext")
    default:
      // The filter has no pictures of a single row or column; larger ones are scaled.
      let size = "\(max(2, width))x\(max(2, height))"
      return Demuxer.Place(
        device: "lavfi", url: "testsrc2=size=\(size):rate=\(rate)", name: "the test picture")
    }
  }

  private static func environment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    switch source {
    case .film(let film): try processFilm(film, &ports)
    case .device(let thread): try processDevice(thread, &ports)
    }
  }

  private mutating func processFilm(_ film: FilmReader, _ ports: inout Ports) throws(NodeFault) -> Outcome {
    let begin = start ?? ports.now
    start = begin
    guard film.pictureTime != nil, let pictures = film.pictures else { return .ended }
    let due = begin &+ rate.time(ofPictures: madeCount)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    // A machine that has no time for all of them would otherwise fall behind for good.
    let isLate = ports.now &- due > Self.patience
    let isOver = isLate && lastCame.map { ports.now &- $0 < Self.patience } ?? false
    if !isOver {
      guard unsafe scaler.scale(UnsafePointer(pictures.decoder.frame)) else { throw NodeFault(.library) }
      lastCame = ports.now
      try emit(at: due, &ports)
    }
    madeCount += 1
    try film.advancePicture()
    return .again
  }

  private mutating func processDevice(
    _ thread: CaptureThread, _ ports: inout Ports
  ) throws(NodeFault) -> Outcome {
    times.note(ports.now, monotonic: Clock(.realtime).now)
    let caught = thread.fetch()
    if let picture = caught.newest {
      guard unsafe scaler.scale(picture.frame) else { throw NodeFault(.library) }
      noteArrival(&ports)
      try emit(at: times.time(picture.time), &ports)
    }
    if damaged.isDue(caught.damage, at: ports.now, isLast: caught.ending != nil) {
      ports.post(Event.damaged.rawValue) { $0.field("count", caught.damage) }
    }
    if caught.newest == nil, let ending = caught.ending {
      words.text = ending
      throw NodeFault(.gone)
    }
    watchForStall(&ports)
    return caught.ending == nil ? .done : .again
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
    case .gone: "\(name) is gone: \(words.text ?? "it gives no more pictures")"
    case .library: "pictures of \(name) are of a kind that cannot be converted"
    default: nil
    }
  }
}
