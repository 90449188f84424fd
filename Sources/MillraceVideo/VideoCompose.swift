public import MillraceCore

/// `video.compose`: composes several pictures into one.
///
/// - Inputs `in1` to `in16`: raw pictures of any size, pixel type and rate. Output `out`: planar 4:2:0, `width` by `height`, one picture every
///   period of `rate` on the graph's clock, starting with the first picture of any input; position counts them.
/// - Each output shows the newest picture of every input. `floatRight`, `floatLeft`: the first input with a picture is shown whole, as
///   large as fits, the others are insets. `gridFit`, `gridFill`: equal cells, as many as inputs have a picture. Uncovered areas have the colour
///   `background`. `layout` can be changed while running.
/// - An input without a picture takes no space. An input without new pictures keeps its last one, even after it has ended, unless `keep`
///   limits that. An input without pictures for `stall` is reported (`stalled`, `resumed`).
/// - Ends when all inputs have ended. Video files need `pace`: of faster input only the newest picture is shown.
/// - Latency: up to one period. Bulk lane; no heap while cell sizes are constant.
@safe
public struct VideoCompose: ~Copyable, Node {
  /// Most inputs.
  static let most = 16

  public static let contract = NodeContract(
    "video.compose", "composes several pictures into one: picture-in-picture, or a grid",
    text: """
      `floatRight` and `floatLeft` show the first input whole, as large as fits, and the others as insets, cropped to the output's \
      aspect ratio, in a column at that edge, from the lower corner up. `gridFit` shows all pictures whole in equal cells, `gridFill` crops \
      them to fill their cells. Only inputs that have a picture get a cell.
      """,
    inputs: [PortContract("in", .video(), text: "pictures", copies: 1...most, holds: 1)],
    outputs: [PortContract("out", .video(pixels: [.i420]), text: "the composed pictures")],
    parameters: [
      ParameterContract(
        "layout", .choice(ComposeLayout.allCases.map(\.rawValue)), default: "floatRight", live: true,
        text: "arrangement of the pictures"),
      ParameterContract(
        "width", .integer(16...7_680), unit: "px", default: 1_280, text: "output width"),
      ParameterContract(
        "height", .integer(16...4_320), unit: "px", default: 720, text: "output height"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30, text: "output frame rate"),
      ParameterContract(
        "background", .list(of: .integer(0...255), count: 3...3), default: .list([0, 0, 0]),
        text: "red, green and blue of uncovered areas"),
      ParameterContract(
        "inset", .number(0.05...0.5), default: 0.25, text: "size of insets, as a fraction of the output"),
      ParameterContract(
        "margin", .integer(0...256), unit: "px", default: 16, text: "space around insets"),
      ParameterContract(
        "keep", .number(0...3_600_000), unit: "ms", default: 0,
        text: "an input without pictures for this long is no longer shown; 0: its last picture stays"),
      ParameterContract(
        "stall", .number(100...3_600_000), unit: "ms", default: 2_000,
        text: "time without a picture after which `stalled` is posted"),
    ],
    events: [
      EventContract("stalled", text: "no picture from `input` for `ms`"),
      EventContract("resumed", text: "pictures from `input` again, after `ms`"),
    ],
    lane: .bulk, budget: 50_000,
    examples: [
      #"{ "type": "video.compose", "layout": "floatRight", "width": 1280, "height": 720, "rate": 25 }"#,
      #"{ "type": "video.compose", "layout": "gridFit", "background": [32, 32, 32], "keep": 3000 }"#,
    ],
    resolve: { resolution in
      let values = resolution.parameters
      resolution.outputs["out"] = .video(
        width: values.integer("width"), height: values.integer("height"),
        rate: FrameRate(values.integer("rate")))
    })

  private enum Event: Int {
    case stalled, resumed
  }

  private let width: Int
  private let height: Int
  private let rate: FrameRate
  private let bytes: Int
  private let background: (y: UInt8, u: UInt8, v: UInt8)
  private let inset: ComposeLayout.Inset
  private let keep: Nanoseconds
  private let stall: Nanoseconds
  /// nil for unlinked inputs.
  private let inputs: [ComposedInput?]
  private var layout: ComposeLayout
  /// Cells of the current layout and number of pictures.
  private var cells: [ComposeLayout.Cell] = []
  /// When the first picture was due.
  private var start: Nanoseconds?
  private var count: Int64 = 0
  /// True if a new picture has not been shown yet.
  private var hasNew = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, _, let rate) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces pictures only")
    }
    var inputs: [ComposedInput?] = []
    for index in setup.inputs.indices {
      guard case .video(let width, let height, let pixel, _)? = setup.inputs[index].shape?.format else {
        inputs.append(nil)
        continue
      }
      inputs.append(ComposedInput(pixel, width: width, height: height))
    }
    self.inputs = inputs
    self.width = width
    self.height = height
    self.rate = rate
    bytes = PixelType.i420.byteCount(width: width, height: height)
    background = Self.luma(values.numbers("background"))
    inset = ComposeLayout.Inset(share: values.number("inset"), margin: values.integer("margin"))
    keep = values.nanoseconds("keep")
    stall = values.nanoseconds("stall")
    layout = ComposeLayout(rawValue: values.string("layout")) ?? .floatRight
    cells.reserveCapacity(Self.most)
  }

  /// Converts a colour to the graph's pictures: BT.601, full range (JFIF).
  private static func luma(_ colour: [Double]) -> (y: UInt8, u: UInt8, v: UInt8) {
    let (r, g, b) = (colour[0], colour[1], colour[2])
    let y = 0.299 * r + 0.587 * g + 0.114 * b
    func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(255, value.rounded()))) }
    return (byte(y), byte(128 + 0.564 * (b - y)), byte(128 + 0.713 * (r - y)))
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    takeNewest(&ports)
    guard let begin = start else { return .done }
    let due = begin &+ rate.time(ofPictures: count)
    if due <= ports.now {
      try emit(at: due, &ports)
      count += 1
      // Periods missed while the machine was stalled are skipped.
      while begin &+ rate.time(ofPictures: count + 1) <= ports.now { count += 1 }
    }
    ports.wake(at: begin &+ rate.time(ofPictures: count))
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    takeNewest(&ports)
    if hasNew, let begin = start { try emit(at: begin &+ rate.time(ofPictures: count), &ports) }
    return .ended
  }

  /// Takes a new value of a live parameter.
  public mutating func receive(
    _ message: consuming ControlMessage, _ ports: inout Ports
  ) throws(NodeFault) {
    if case .set(_, .choice(let index)) = message, ComposeLayout.allCases.indices.contains(index) {
      layout = ComposeLayout.allCases[index]
      cells.removeAll(keepingCapacity: true)
    }
  }

  /// Takes all waiting pictures; the newest of each input stays.
  private mutating func takeNewest(_ ports: inout Ports) {
    for index in inputs.indices {
      guard let input = inputs[index] else { continue }
      while let picture = ports.next(index) {
        if input.hasStalled {
          input.hasStalled = false
          post(.resumed, of: index, after: ports.now &- input.came, &ports)
        }
        input.take(picture, at: ports.now)
        hasNew = true
        if start == nil { start = ports.now }
      }
    }
  }

  // MARK: Pictures

  private mutating func emit(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    watchForStalls(&ports)
    hasNew = false
    let now = ports.now
    var shown = 0
    for index in inputs.indices where isShown(index, now) { shown += 1 }
    if cells.count != shown {
      cells.removeAll(keepingCapacity: true)
      if shown > 0 { cells = layout.cells(shown, width: width, height: height, inset: inset) }
    }
    var packet = try ports.makePacket(bytes: bytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    paint(&target)
    var next = 0
    for index in inputs.indices where isShown(index, now) {
      guard draw(index, cells[next], &target) else { throw NodeFault(.library) }
      next += 1
    }
    packet.timestamp = time
    packet.position = count
    packet.duration = 1
    packet.flags.insert(.key)
    ports.emit(packet)
  }

  private func isShown(_ index: Int, _ now: Nanoseconds) -> Bool {
    guard let input = inputs[index], input.hasPicture else { return false }
    if keep == 0 { return true }
    return now &- input.came < keep
  }

  private func draw(_ index: Int, _ cell: ComposeLayout.Cell, _ target: inout MutableSpan<UInt8>) -> Bool {
    inputs[index]?.draw(cell, onto: &target, width: width, height: height) ?? false
  }

  /// Fills the picture with the background colour.
  private func paint(_ target: inout MutableSpan<UInt8>) {
    let luma = width * height
    let chroma = (bytes - luma) / 2
    fill(&target, 0, luma, background.y)
    fill(&target, luma, chroma, background.u)
    fill(&target, luma + chroma, chroma, background.v)
  }

  private func fill(_ target: inout MutableSpan<UInt8>, _ start: Int, _ count: Int, _ value: UInt8) {
    unsafe target.withUnsafeMutableBufferPointer { target in
      unsafe target.baseAddress?.advanced(by: start).update(repeating: value, count: count)
    }
  }

  // MARK: Stalls

  private mutating func watchForStalls(_ ports: inout Ports) {
    for index in inputs.indices {
      guard let input = inputs[index], input.hasPicture, !input.hasStalled, !ports.isOver(index) else {
        continue
      }
      let gap = ports.now &- input.came
      guard gap >= stall else { continue }
      input.hasStalled = true
      post(.stalled, of: index, after: gap, &ports)
    }
  }

  private func post(_ event: Event, of input: Int, after time: Nanoseconds, _ ports: inout Ports) {
    ports.post(event.rawValue) { writer in
      writer.field("input", input + 1)
      writer.field("ms", Double(time) / 1e6, decimals: 0)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .library ? "pictures of these sizes cannot be composed into \(width)x\(height)" : nil
  }
}
