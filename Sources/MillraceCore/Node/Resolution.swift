/// The format and packet sizes of one output, resolved before the graph starts.
public struct OutputShape: Sendable, Hashable {
  /// The format of the packets.
  public var format: Format
  /// Usual duration of a packet; nil when packets have no regular length.
  public var packetDuration: Nanoseconds?
  /// Size in bytes of the largest packet the node emits here.
  public var packetBytes: Int
  /// Most packets that one call may emit; the engine waits for room for as many. 0: the engine does not wait for room, so a slow
  /// reader of this output blocks nothing else; the node checks `hasRoomOrRequestsWake` before each packet.
  public var burst: Int
  /// Size in bytes of the largest packet that the node makes here itself; blocks are reserved for it. It is less than `packetBytes` when
  /// larger packets are only passed on in the blocks they arrived in.
  public var madeBytes: Int

  /// Creates a shape from a format and the size of its largest packet.
  public init(
    _ format: Format, packetDuration: Nanoseconds?, packetBytes: Int, burst: Int = 1, madeBytes: Int? = nil
  ) {
    self.format = format
    self.packetDuration = packetDuration
    self.packetBytes = packetBytes
    self.burst = burst
    self.madeBytes = madeBytes ?? packetBytes
  }

  /// PCM in packets of `frames` samples per channel.
  public static func pcm(
    rate: Int, channels: Int, sample: SampleType, frames: Int, burst: Int = 1
  ) -> OutputShape {
    OutputShape(
      .pcm(rate: rate, channels: channels, sample: sample),
      packetDuration: .samples(Int64(frames), rate: rate),
      packetBytes: frames * channels * sample.byteCount, burst: burst)
  }

  /// Raw pictures, one per packet.
  public static func video(
    width: Int, height: Int, pixel: PixelType = .i420, rate: FrameRate
  ) -> OutputShape {
    OutputShape(
      .video(width: width, height: height, pixel: pixel, rate: rate),
      packetDuration: rate.time(ofPictures: 1), packetBytes: pixel.byteCount(width: width, height: height))
  }

  /// The shape for a node that copies what it reads: it makes packets of every size itself, and waits for room.
  fileprivate var madeByReader: OutputShape {
    OutputShape(format, packetDuration: packetDuration, packetBytes: packetBytes, burst: max(1, burst))
  }

  /// Samples per channel of the largest PCM packet; nil for other formats.
  public var frames: Int? { format.frameBytes.map { packetBytes / $0 } }
}

/// A problem that a node's resolution found.
public struct ResolutionProblem: Sendable, Hashable {
  /// The parameter at fault; nil: the node as a whole.
  public var parameter: String?
  /// What is wrong.
  public var text: String
  /// What to do.
  public var cure: String?
}

/// Input and result of a contract's `resolve`.
///
/// The graph fills in the constants; `resolve` sets the variables.
public struct Resolution: Sendable {
  /// The node's name in the graph.
  public let node: String
  /// The checked parameters, with defaults filled in.
  public let parameters: ParameterValues
  /// What each input carries, by port name (repeated ports with their number). Absent when unlinked, or not known yet within a cycle.
  public let inputs: [String: OutputShape]
  /// Names of the linked inputs in the contract's order, repeated ports with their number.
  public let linkedInputs: [String]
  /// What the readers of each output accept, by port name; absent when it has none.
  public let wanted: [String: [FormatConstraint]]

  /// The shape of each output, by port name.
  public var outputs: [String: OutputShape] = [:]
  /// Delay that the algorithm adds between input and output.
  public var latency: Nanoseconds = 0
  /// How the node is paced; used for nodes with drive `itself`.
  public var pacing: Pacing = .waits
  /// Budget of a call of this node in microseconds; nil: that of the contract.
  public var budget: Int?
  /// Values that the node uses itself, and what for (`for its ports "data"`): nodes that name it must have others where a value has to be
  /// distinct (`NodeReference.distinct`).
  package var reservedNames: [String: String] = [:]
  /// The problems found. A node with problems is not created.
  public var problems: [ResolutionProblem] = []

  /// Creates a resolution; for graph checks and test benches.
  public init(
    node: String, parameters: ParameterValues, inputs: [String: OutputShape], linkedInputs: [String],
    wanted: [String: [FormatConstraint]]
  ) {
    self.node = node
    self.parameters = parameters
    // A node that uses an input's shape for its output may make packets of any size of that shape.
    self.inputs = inputs.mapValues { $0.madeByReader }
    self.linkedInputs = linkedInputs
    self.wanted = wanted
  }

  /// The shape of the input `in`; nil when it is unlinked or not known yet.
  public var input: OutputShape? { inputs["in"] }

  /// Sets the output `out` to the shape of the first known input, unless it is already set.
  public mutating func passThrough() {
    for name in linkedInputs {
      guard let shape = inputs[name] else { continue }
      if outputs["out"] == nil { outputs["out"] = shape }
      return
    }
  }

  /// Adds a problem with a parameter or, when nil, with the node.
  public mutating func refuse(_ parameter: String? = nil, _ text: String, cure: String? = nil) {
    problems.append(ResolutionProblem(parameter: parameter, text: text, cure: cure))
  }

  /// True when every reader of the output accepts the format.
  public func isWanted(_ format: Format, at port: String = "out") -> Bool {
    (wanted[port] ?? []).allSatisfy { $0.accepts(format) }
  }
}
