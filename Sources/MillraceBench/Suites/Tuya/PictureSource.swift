import MillraceCore
import MillraceVideo
import Synchronization

/// A camera whose pictures have all the same size: one JPEG again and again.
struct PictureSource: Node {
  static let contract = NodeContract(
    "bench.picture", "gives the same JPEG again and again",
    outputs: [PortContract("out", .kind(.jpeg), text: "the picture")],
    parameters: [
      ParameterContract("interval", .number(1...60_000), unit: "ms", default: 500, text: "time between two")
    ],
    drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = OutputShape(.jpeg, packetDuration: nil, packetBytes: jpeg.count)
      resolution.pacing = .live
    })

  /// Bytes of the picture: nearly all of them, so that the limit is the size.
  static let bytes = 60_000
  /// A photograph that just fits.
  static let jpeg: [UInt8] = {
    let picture = SyntheticPictures.picture(width: 896, height: 504, grain: 12, seed: 7)
    let encoder = BudgetEncoder(limit: bytes, width: picture.width, height: picture.height)
    guard (try? encoder.encode(picture.view)) != nil else { return [] }
    return unsafe Array(encoder.bytes)
  }()

  private let interval: Nanoseconds
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    interval = Nanoseconds(setup.parameters.number("interval") * 1e6)
    guard !Self.jpeg.isEmpty else { throw NodeProblem("the picture cannot be encoded") }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = Nanoseconds(next) * interval
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: Self.jpeg.count, of: .none)
    packet.timestamp = due
    var target = packet.mutableSamples(of: UInt8.self)
    for (index, byte) in Self.jpeg.enumerated() { target[index] = byte }
    ports.emit(packet)
    next += 1
    return .again
  }
}
