public import MillraceCore

/// `video.compose`: several pictures in one.
///
/// - In `in1` to `in16`: raw pictures of any sizes, pixel types and rates. Out `out`: planar 4:2:0, `width` by `height`, a picture every
///   period of `rate` on the graph's clock, beginning with the first picture of any input; position counts them.
/// - Each shows the newest picture of every input. `floatRight`, `floatLeft`: the first input that has a picture whole over all, the
///   others in small over it. `gridFit`, `gridFill`: equal cells, as many as inputs have a picture. What no picture
///   covers has the colour `background`. `layout` can be changed while running.
/// - An input without a picture takes no place. One that gives nothing new keeps its last picture, also when it has ended, unless
///   `keep` says for how long. One that gives nothing for `stall` is told (`stalled`, `resumed`).
/// - Ends when all inputs have ended. Films want `pace`: of what comes faster than it is shown the newest stays.
/// - Latency up to one period. Bulk lane; no heap while the sizes of the places stay.
@safe
public struct VideoCompose: ~Copyable, Node {
  /// Most inputs.
  static let most = 16

  public static let contract = NodeContract(
    "video.compose", "puts several pictures into one: picture in picture, or a grid",
    text: """
      `floatRight` and `floatLeft` show the first input whole and the others in small, in a column at that edge from the lower \
      corner up, cut to the shape of the output. `gridFit` shows all whole in equal cells, `gridFill` cuts them to fill their \
      cells. Only inputs that have a picture take a place.
      """,
    inputs: [PortContract("in", .video(), text: "pictures", copies: 1...most, holds: 1)],
    outputs: [PortContract("out", .video(pixels: [.i420]), text: "the composed pictures")],
    parameters: [
      ParameterContract(
        "layout", .choice(ComposeLayout.allCases.map(\.rawValue)), default: "floatRight", live: true,
        text: "where the pictures go"),
      ParameterContract(
        "width", .integer(16...7_680), unit: "px", default: 1_280, text: "width of what comes out"),
      ParameterContract(
        "height", .integer(16...4_320), unit: "px", default: 720, text: "height of what comes out"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30, text: "pictures a second"),
      ParameterContract(
        "background", .list(of: .integer(0...255), count: 3...3), default: .list([0, 0, 0]),
        text: "red, green and blue of what no picture covers"),
      ParameterContract(
        "inset", .number(0.05...0.5), default: 0.25, text: "size of small pictures, as a part of the whole"),
      ParameterContract(
        "margin", .integer(0...256), unit: "px", default: 16, text: "space around small pictures"),
      ParameterContract(
        "keep", .number(0...3_600_000), unit: "ms", default: 0,
        text: "an input that gives nothing for so long is no longer shown; 0: its last picture stays"),
      ParameterContract(
        "stall", .number(100...3_600_000), unit: "ms", default: 2_000,
        text: "time without a picture of an input that is told"),
    ],
    events: [
      EventContract("stalled", text: "`input` has given no picture for `ms`"),
      EventContract("resumed", text: "`input` gives pictures again, after `ms`"),
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
  /// nil where nothing is linked.
  private let inputs: [ComposedInput?]
  private var layout: ComposeLayout
  /// Cells of the present layout for so many pictures.
  private var cells: [ComposeLayout.Cell] = []
  /// When the first picture was due.
  private var start: Nanoseconds?
  private var count: Int64 = 0
  /// Something came that no picture shows yet.
  private var hasNew = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, _, let rate) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" makes pictures only")
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

  /// A colour as pictures of the graph have it: BT.601 of full range (JFIF).
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
      // What should have been drawn while the machine stood still is left out.
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

  /// Takes all pictures that wait; the newest of each input stays.
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

  /// Gives the whole picture the colour of the background.
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
    fault.reason == .library ? "pictures of these sizes cannot be put into \(width)x\(height)" : nil
  }
}
