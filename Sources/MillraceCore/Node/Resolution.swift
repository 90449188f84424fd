/// What one output will carry, as decided before the graph starts.
public struct OutputShape: Sendable, Hashable {
  /// What the packets are.
  public var format: Format
  /// Time one packet usually stands for; nil when packets have no regular length.
  public var packetDuration: Nanoseconds?
  /// Bytes of the largest packet the node will ever emit here.
  public var packetBytes: Int
  /// Packets one call may emit at most (room for as many is waited for). 0: no room is waited for, so that a reader of this output who
  /// takes nothing holds up nothing else; the node asks `hasRoomOrAsks` before each packet.
  public var burst: Int
  /// Bytes of the largest packet the node makes here itself, for which blocks are reserved. Less than `packetBytes` where larger
  /// ones are only handed on, in the blocks they came in.
  public var madeBytes: Int

  /// A shape by its format and the largest packet.
  public init(
    _ format: Format, packetDuration: Nanoseconds?, packetBytes: Int, burst: Int = 1, madeBytes: Int? = nil
  ) {
    self.format = format
    self.packetDuration = packetDuration
    self.packetBytes = packetBytes
    self.burst = burst
    self.madeBytes = madeBytes ?? packetBytes
  }

  /// PCM in packets of so many samples per channel.
  public static func pcm(
    rate: Int, channels: Int, sample: SampleType, frames: Int, burst: Int = 1
  ) -> OutputShape {
    OutputShape(
      .pcm(rate: rate, channels: channels, sample: sample),
      packetDuration: .samples(Int64(frames), rate: rate),
      packetBytes: frames * channels * sample.byteCount, burst: burst)
  }

  /// Raw pictures, one a packet.
  public static func video(
    width: Int, height: Int, pixel: PixelType = .i420, rate: FrameRate
  ) -> OutputShape {
    OutputShape(
      .video(width: width, height: height, pixel: pixel, rate: rate),
      packetDuration: rate.time(ofPictures: 1), packetBytes: pixel.byteCount(width: width, height: height))
  }

  /// The same for a node that copies what it reads, when there is room: of every size there is.
  fileprivate var madeByReader: OutputShape {
    OutputShape(format, packetDuration: packetDuration, packetBytes: packetBytes, burst: max(1, burst))
  }

  /// Samples per channel of the largest PCM packet; nil for other formats.
  public var frames: Int? { format.frameBytes.map { packetBytes / $0 } }
}

/// Something a node's resolution objects to, in words.
public struct ResolutionProblem: Sendable, Hashable {
  /// The parameter to point at; nil points at the node.
  public var parameter: String?
  /// What is wrong.
  public var text: String
  /// What to do.
  public var cure: String?
}

/// The question put to a contract's `resolve`, and its answer.
///
/// The graph fills in the upper half; `resolve` fills in the lower half.
public struct Resolution: Sendable {
  /// The node's name in the graph.
  public let node: String
  /// Checked parameters, defaults filled in.
  public let parameters: ParameterValues
  /// What each input carries, by port name (repeated ports with their number). Absent: unlinked, or in a cycle not known yet.
  public let inputs: [String: OutputShape]
  /// Names of linked inputs, repeated ports with their number, in the contract's order.
  public let linkedInputs: [String]
  /// What all consumers of an output accept, by port name; absent when it has none.
  public let wanted: [String: [FormatConstraint]]

  /// What each output will carry, by port name.
  public var outputs: [String: OutputShape] = [:]
  /// Time between a sample's arrival and its leaving that the algorithm adds.
  public var latency: Nanoseconds = 0
  /// How the node produces; meaningful for nodes that run by themselves.
  public var pacing: Pacing = .waits
  /// What this instance needs a call to be allowed, in microseconds; nil: as the contract says.
  public var budget: Int?
  /// Objections. A node with any is not made.
  public var problems: [ResolutionProblem] = []

  /// The question, for whoever resolves a graph or a bench.
  public init(
    node: String, parameters: ParameterValues, inputs: [String: OutputShape], linkedInputs: [String],
    wanted: [String: [FormatConstraint]]
  ) {
    self.node = node
    self.parameters = parameters
    // Who hands an input's shape on as its own output's makes packets of all sizes it has.
    self.inputs = inputs.mapValues { $0.madeByReader }
    self.linkedInputs = linkedInputs
    self.wanted = wanted
  }

  /// What the port `in` carries.
  public var input: OutputShape? { inputs["in"] }

  /// The output `out`, unless decided already, carries what the first known input carries.
  public mutating func passThrough() {
    for name in linkedInputs {
      guard let shape = inputs[name] else { continue }
      if outputs["out"] == nil { outputs["out"] = shape }
      return
    }
  }

  /// Objects, pointing at a parameter or (nil) at the node.
  public mutating func refuse(_ parameter: String? = nil, _ text: String, cure: String? = nil) {
    problems.append(ResolutionProblem(parameter: parameter, text: text, cure: cure))
  }

  /// True when every consumer of the output accepts the format.
  public func isWanted(_ format: Format, at port: String = "out") -> Bool {
    (wanted[port] ?? []).allSatisfy { $0.accepts(format) }
  }
}
