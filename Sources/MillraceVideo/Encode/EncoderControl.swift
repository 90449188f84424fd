internal import MillraceCore
internal import MillraceJSON

/// The input `control` of a node that encodes or decodes pictures: commands, and what a node of WebRTC reports.
struct EncoderControl {
  /// What the packets ask for; nil: nothing.
  struct Requests {
    /// A key frame, as soon as possible.
    var wantsKey = false
    /// What the network carries, in bit/s; 0: as the parameters say.
    var target: Int?
    var bitrate: Int?
    var rate: Double?
    var keyInterval: Double?
    var maxWidth: Int?
    var maxHeight: Int?
    /// What could not be understood.
    var problems: [NodeProblem] = []
  }

  /// The longest message that is read, in bytes: events of services may be long, and none of those counts.
  private static let longest = 65_536
  /// Most messages that one call handles; the others wait.
  private static let most = 64

  private let index: Int

  /// The input with this index of a node.
  init(input index: Int) { self.index = index }

  /// Takes the packets that wait.
  func take(_ ports: inout Ports) -> Requests {
    var requests = Requests()
    var count = 0
    while count < Self.most, let packet = ports.next(index) {
      Self.read(packet, into: &requests)
      count += 1
    }
    return requests
  }

  /// Reads a message: of the input, or of the program.
  static func read(_ packet: borrowing Packet, into requests: inout Requests) {
    let content = packet.samples(of: UInt8.self)
    guard content.count <= longest else { return }
    let bytes = content.indices.map { content[$0] }
    // A node's output of events may be linked as a whole. Each of them is parsed, so that what is no event is noticed.
    guard let message = try? JSONValue(parsing: bytes), message.members != nil else {
      requests.problems.append(
        NodeProblem(
          "the message is not a JSON object",
          cure: #"send {"command":"update","values":{"bitrate":800000}}"#))
      return
    }
    if let command = message["command"]?.string {
      requests.take(command: command, message)
    } else {
      requests.take(event: message)
    }
  }
}

extension EncoderControl.Requests {
  fileprivate mutating func take(command: String, _ message: JSONValue) {
    switch (command, message["name"]?.string) {
    case ("update", _): update(message["values"] ?? .object([]))
    case ("extra", "requestKeyFrame"): wantsKey = true
    default:
      problems.append(
        NodeProblem(
          "the command \"\(command.prefix(64))\" is not supported here",
          cure: "send \"update\" with \"bitrate\" or \"rate\", or \"extra\" with the name \"requestKeyFrame\""
        ))
    }
  }

  /// An event of a node of WebRTC, which has the vocabulary of the dialogue, or of `video.decode`.
  fileprivate mutating func take(event message: JSONValue) {
    let isExtra = message["event"]?.string == "extra"
    let name = isExtra ? message["name"]?.string : message["event"]?.string
    switch name {
    case "keyframeRequested": wantsKey = true
    case "targetBitrate":
      let payload = isExtra ? message["payload"] : message
      if let bits = payload?["bps"]?.integer, bits >= 0 { target = bits }
    default: break
    }
  }

  /// The values of `update`, under the names of the parameters.
  private mutating func update(_ values: JSONValue) {
    for member in values.members ?? [] {
      switch member.name {
      case "bitrate": bitrate = integer(member, VideoEncode.bitrates) ?? bitrate
      case "rate": rate = number(member, VideoEncode.rates) ?? rate
      case "keyInterval": keyInterval = number(member, VideoEncode.keyIntervals) ?? keyInterval
      case "maxWidth": maxWidth = integer(member, VideoEncode.sides) ?? maxWidth
      case "maxHeight": maxHeight = integer(member, VideoEncode.sides) ?? maxHeight
      default:
        problems.append(
          NodeProblem(
            "\"\(member.name.prefix(64))\" cannot be updated",
            cure: "use \"bitrate\", \"rate\", \"keyInterval\", \"maxWidth\" or \"maxHeight\""))
      }
    }
  }

  private mutating func integer(_ member: JSONValue.Member, _ range: ClosedRange<Int>) -> Int? {
    if let value = member.value.integer, range.contains(value) { return value }
    refuse(member, "\(range.lowerBound) to \(range.upperBound)")
    return nil
  }

  private mutating func number(_ member: JSONValue.Member, _ range: ClosedRange<Double>) -> Double? {
    if let value = member.value.double, range.contains(value) { return value }
    refuse(member, "\(range.lowerBound) to \(range.upperBound)")
    return nil
  }

  private mutating func refuse(_ member: JSONValue.Member, _ range: String) {
    let value =
      switch member.value {
      case .number(let digits): String(digits.prefix(32))
      case .string: "a text"
      default: "no number"
      }
    problems.append(
      NodeProblem("\"\(member.name)\" is \(value)", cure: "use a number from \(range)"))
  }
}
