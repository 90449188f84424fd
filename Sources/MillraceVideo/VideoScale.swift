public import MillraceCore

/// `video.scale`: changes the size, region, orientation, pixel type or rate of pictures.
///
/// - Input `in`, output `out`: raw pictures. In this order: pictures beyond `rate` are dropped, the region `crop` is cut out, scaled, mirrored
///   horizontally, rotated. `width` and `height` are those of the output; if only one is given, the other follows.
/// - Scaling uses swscale with Lanczos; colours stay BT.601 full range. Pictures that need no change are passed on as they are.
/// - Dropping follows the pictures' timestamps on a grid from the first one: the first picture of each period is kept. Positions count the output.
/// - No latency. Bulk lane: 4 ms from 1920x1080 to 1280x720.
@safe
public struct VideoScale: ~Copyable, Node {
  public static let contract = NodeContract(
    "video.scale", "crops, scales, mirrors and rotates pictures, and changes pixel type and rate",
    inputs: [PortContract("in", .video(), text: "raw pictures")],
    outputs: [PortContract("out", .video(), text: "the changed pictures")],
    parameters: [
      ParameterContract("width", .integer(ScalePlan.sides), unit: "px", text: "output width"),
      ParameterContract("height", .integer(ScalePlan.sides), unit: "px", text: "output height"),
      ParameterContract(
        "crop", .list(of: .integer(0...16_384), count: 4...4), unit: "px",
        text: "left, top, width and height of the region to keep"),
      ParameterContract("mirror", .bool, default: false, text: "mirror horizontally"),
      ParameterContract(
        "rotate", .choice(["0", "90", "180", "270"]), default: "0",
        text: "clockwise rotation in degrees, after mirroring"),
      ParameterContract(
        "rate", .number(0.01...240), unit: "pictures/s",
        text: "highest frame rate; pictures beyond it are dropped"),
      ParameterContract("pixel", PixelType.choice, text: "output pixel type; default: the input's"),
    ],
    lane: .bulk, budget: 50_000,
    examples: [
      #"{ "type": "video.scale", "width": 1280 }"#,
      #"{ "type": "video.scale", "crop": [320, 0, 1280, 720], "rotate": "90", "rate": 5 }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    guard case .video(let width, let height, let pixel, let rate)? = resolution.input?.format else { return }
    do throws(ScalePlan.Refusal) {
      let plan = try ScalePlan(values, width: width, height: height, pixel: pixel)
      resolution.outputs["out"] = .video(
        width: plan.outputWidth, height: plan.outputHeight, pixel: Self.pixel(values) ?? pixel,
        rate: Self.rate(values, rate))
    } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
  }

  private static func pixel(_ values: ParameterValues) -> PixelType? {
    values.has("pixel") ? PixelType(rawValue: values.string("pixel")) : nil
  }

  /// The lower of the two rates, in thousandths.
  private static func rate(_ values: ParameterValues, _ input: FrameRate) -> FrameRate {
    guard values.has("rate") else { return input }
    let wanted = values.number("rate")
    guard wanted * Double(input.denominator) < Double(input.numerator) else { return input }
    let thousandths = max(1, Int((wanted * 1_000).rounded()))
    return thousandths % 1_000 == 0 ? FrameRate(thousandths / 1_000) : FrameRate(thousandths, over: 1_000)
  }

  private let pixel: PixelType
  private let width: Int
  private let height: Int
  private let plan: ScalePlan
  private let outputBytes: Int
  /// nil if pictures are not changed.
  private let scaler: PictureScaler?
  /// The reduced frame rate; nil if all pictures are kept.
  private let rate: FrameRate?
  private var start: Nanoseconds?
  /// The period of the last picture kept.
  private var period: Int64 = -1
  private var count: Int64 = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, let input) = setup.inputFormat(),
      case .video(_, _, let output, let rate) = setup.outputFormat()
    else { throw NodeProblem("\"\(setup.name)\" takes only pictures") }
    // No member is read before all are set: Documentation/decisions.md, 52.
    let plan: ScalePlan
    do throws(ScalePlan.Refusal) {
      plan = try ScalePlan(setup.parameters, width: width, height: height, pixel: pixel)
    } catch {
      throw NodeProblem(error.text, parameter: error.parameter, cure: error.cure)
    }
    let isSame = output == pixel && plan.isIdentity(width: width, height: height)
    self.width = width
    self.height = height
    self.pixel = pixel
    self.plan = plan
    self.rate = rate == input ? nil : rate
    outputBytes = output.byteCount(width: plan.outputWidth, height: plan.outputHeight)
    scaler = isSame ? nil : PictureScaler(to: output, width: plan.width, height: plan.height)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let picture = ports.next(), stays(picture.timestamp) else { return .done }
    if let scaler {
      ports.emit(try change(picture, with: scaler, &ports))
    } else {
      var same = try ports.makeWritable(picture)
      same.position = count
      ports.emit(same)
    }
    count += 1
    return .done
  }

  private func change(
    _ picture: borrowing Packet, with scaler: PictureScaler, _ ports: inout Ports
  ) throws(NodeFault) -> Packet {
    let view = PictureView(picture.samples(of: UInt8.self), pixel, width: width, height: height)
    guard
      scaler.scale(view, left: plan.left, top: plan.top, width: plan.partWidth, height: plan.partHeight)
    else { throw NodeFault(.library) }
    var packet = try ports.makePacket(bytes: outputBytes, of: HeldReply(of: picture))
    packet.copyMetadata(from: picture)
    packet.position = count
    var target = packet.mutableSamples(of: UInt8.self)
    scaler.copy(into: &target, turned: plan.turn)
    return packet
  }

  /// True for the first picture of every period.
  private mutating func stays(_ time: Nanoseconds) -> Bool {
    guard let rate else { return true }
    let begin = start ?? time
    start = begin
    // Up to 1 % of a period early counts as on time: file timestamps are rounded.
    let length = Double(rate.denominator) * 1e9 / Double(rate.numerator)
    let present = Int64((Double(time &- begin) / length + 0.01).rounded(.down))
    guard present != period else { return false }
    period = present
    return true
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .library
      ? "pictures of \(width)x\(height) cannot be scaled to \(plan.width)x\(plan.height)" : nil
  }
}
