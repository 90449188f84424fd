public import MillraceCore

/// `video.snapshot`: emits the next picture as JPEG or PNG on request.
///
/// - Input `in`: raw pictures of any size and pixel type; all except requested ones are released. Output `out`: JPEG or PNG.
/// - Any text sent to the node requests one picture, the first that arrives after it; two texts request two pictures. If none arrives any more,
///   event `missed`.
/// - With `maxBytes` a JPEG is strictly smaller, as in `video.sample`; otherwise it has the requested quality.
/// - A picture larger than its budget, or than three bytes per pixel, is not emitted; event `tooLarge`.
/// - Latency: encoding, about 10 ms at 1280x720, 30 ms for PNG. Bulk lane; allocates, as the libraries do.
@safe
public struct VideoSnapshot: ~Copyable, Node {
  public static let contract = NodeContract(
    "video.snapshot", "takes a snapshot of the next picture on request, as JPEG or PNG",
    text:
      "Send the node any text to request a picture: from the terminal with `millrace run`, or from a program through its run.",
    inputs: [PortContract("in", .video(), text: "raw pictures")],
    outputs: [PortContract("out", .kind(.jpeg).or(.kind(.png)), text: "the requested pictures")],
    parameters: [
      ParameterContract("format", .choice(["jpeg", "png"]), default: "jpeg", text: "image format"),
      ParameterContract(
        "quality", .integer(1...100), default: 90, text: "JPEG quality, as in libjpeg"),
      ParameterContract(
        "maxBytes", .integer(1_000...64_000_000), unit: "bytes",
        text: "size limit of a JPEG, whatever quality that takes; default: use `quality`"),
    ],
    events: [
      EventContract("taken", text: "a picture was emitted: `bytes`, `width`, `height`"),
      EventContract("tooLarge", text: "a picture was too large and was not emitted"),
      EventContract("missed", text: "at the end: `count` requests got no picture"),
    ],
    lane: .bulk, budget: 200_000,
    examples: [#"{ "type": "video.snapshot", "format": "png" }"#],
    resolve: { resolution in
      let values = resolution.parameters
      guard case .video(let width, let height, _, _)? = resolution.input?.format else { return }
      let isPNG = values.string("format") == "png"
      if !isPNG { JPEGEncoder.check(&resolution) }
      let bytes =
        isPNG
        ? PNGEncoder.maximumBytes(width: width, height: height)
        : values.has("maxBytes") ? values.integer("maxBytes") - 1 : 65_536 + 3 * width * height
      if isPNG && values.has("maxBytes") {
        resolution.refuse(
          "maxBytes", "a PNG cannot be limited in size", cure: "use jpeg, or remove \"maxBytes\"")
      }
      resolution.outputs["out"] = OutputShape(isPNG ? .png : .jpeg, packetDuration: nil, packetBytes: bytes)
    })

  private enum Event: Int {
    case taken, tooLarge, missed
  }

  private enum Work {
    case png(PNGEncoder)
    case jpeg(JPEGEncoder, scale: Double)
    case budget(BudgetEncoder)
  }

  private let pixel: PixelType
  private let width: Int
  private let height: Int
  private let work: Work
  private let converter: PictureScaler?
  private let maximumBytes: Int
  /// Pending requests.
  private var wanted = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, _) = setup.inputFormat(),
      let shape = setup.outputs[0].shape
    else { throw NodeProblem("\"\(setup.name)\" takes only pictures") }
    work = try Self.work(setup.parameters, shape, width: width, height: height)
    self.width = width
    self.height = height
    self.pixel = pixel
    maximumBytes = shape.packetBytes
    let isDirect = pixel == .i420 || shape.format == .png
    converter = isDirect ? nil : PictureScaler(to: .i420, width: width, height: height)
  }

  private static func work(
    _ values: ParameterValues, _ shape: OutputShape, width: Int, height: Int
  ) throws(NodeProblem) -> Work {
    if shape.format == .png {
      guard let encoder = PNGEncoder(width: width, height: height) else {
        throw NodeProblem("this build of FFmpeg has no PNG encoder", parameter: "format", cure: "use jpeg")
      }
      return .png(encoder)
    }
    if values.has("maxBytes") {
      return .budget(BudgetEncoder(limit: shape.packetBytes, width: width, height: height))
    }
    return .jpeg(JPEGEncoder(), scale: JPEGEncoder.scale(ofQuality: values.integer("quality")))
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    if case .text = consume message { wanted += 1 }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let picture = ports.next(), wanted > 0 else { return .done }
    wanted -= 1
    var packet = try ports.makePacket(bytes: maximumBytes, of: HeldReply(of: picture))
    let view = PictureView(picture.samples(of: UInt8.self), pixel, width: width, height: height)
    guard let count = try fill(&packet, view) else {
      ports.post(Event.tooLarge.rawValue)
      return .done
    }
    packet.setByteCount(count)
    packet.timestamp = picture.timestamp
    packet.position = picture.position
    let (width, height) = (width, height)
    ports.post(Event.taken.rawValue) { event in
      event.field("bytes", count)
      event.field("width", width)
      event.field("height", height)
    }
    ports.emit(packet)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let count = wanted
    if count > 0 { ports.post(Event.missed.rawValue) { $0.field("count", count) } }
    return .ended
  }

  /// Writes the file into a packet and returns its size; nil if it is too large.
  private func fill(_ packet: inout Packet, _ picture: borrowing PictureView) throws(NodeFault) -> Int? {
    guard let converter else { return try encode(picture, into: &packet) }
    guard converter.scale(picture) else { throw NodeFault(.library) }
    return try encode(converter.view, into: &packet)
  }

  private func encode(_ picture: borrowing PictureView, into packet: inout Packet) throws(NodeFault) -> Int? {
    var target = packet.mutableSamples(of: UInt8.self)
    let room = target.count
    switch work {
    case .png(let encoder):
      var count = 0
      let isDone = unsafe encoder.encode(picture) { bytes in
        count = bytes.count
        guard count <= room else { return }
        unsafe target.withUnsafeMutableBufferPointer {
          unsafe UnsafeMutableRawBufferPointer($0).copyMemory(from: bytes)
        }
      }
      guard isDone else { throw NodeFault(.library) }
      return count <= room ? count : nil
    case .jpeg(let encoder, let scale):
      let count = unsafe target.withUnsafeMutableBufferPointer {
        unsafe encoder.encode(picture, scale: scale, into: UnsafeMutableRawBufferPointer($0))
      }
      guard let count else { throw NodeFault(.library) }
      return count <= room ? count : nil
    case .budget(let encoder):
      do throws(BudgetEncoder.Failure) {
        let result = try encoder.encode(picture)
        encoder.copy(result, into: &target)
        return result.byteCount
      } catch {
        if error == .tooLarge { return nil }
        throw NodeFault(.library)
      }
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .library else { return nil }
    let words =
      switch work {
      case .png: ""
      case .jpeg(let encoder, _): encoder.words
      case .budget(let encoder): encoder.words
      }
    return "a picture of \(width)x\(height) could not be encoded\(words.isEmpty ? "" : ": " + words); "
      + "add video.scale before it"
  }
}
