import MillraceCore
import MillraceJSON
import MillraceVideo

/// A program that has a picture sent again and again, of the same size each time.
struct PictureCommands: Node {
  static let contract = NodeContract(
    "bench.pictures", "commands a picture to be sent, again and again",
    outputs: [PortContract("out", .kind(.text), text: "the commands")],
    parameters: [
      ParameterContract("path", .path, text: "the picture"),
      ParameterContract("interval", .number(1...60_000), unit: "ms", default: 500, text: "time between two"),
    ],
    drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: mostBytes)
      resolution.pacing = .live
    })

  /// Bytes of the picture: nearly all of them, so that the limit is the size.
  static let bytes = 60_000
  /// A photograph that just fits; nil: it cannot be encoded.
  static let jpeg: [UInt8]? = {
    let picture = SyntheticPictures.picture(width: 896, height: 504, grain: 12, seed: 7)
    let encoder = BudgetEncoder(limit: bytes, width: picture.width, height: picture.height)
    guard (try? encoder.encode(picture.view)) != nil else { return nil }
    return unsafe Array(encoder.bytes)
  }()
  /// Bytes of the longest command, with the longest path of the system.
  private static let mostBytes = 4_352

  private let command: [UInt8]
  private let interval: Nanoseconds
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let command: JSONValue = [
      "command": "extra", "name": "sendImage", "payload": ["path": .string(setup.parameters.string("path"))],
    ]
    self.command = Array(command.text.utf8)
    interval = Nanoseconds(setup.parameters.number("interval") * 1e6)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = Nanoseconds(next) * interval
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: command.count, of: .none)
    packet.timestamp = due
    var target = packet.mutableSamples(of: UInt8.self)
    for (index, byte) in command.enumerated() { target[index] = byte }
    ports.emit(packet)
    next += 1
    return .again
  }
}
