internal import MillraceCore

extension DialogTurn {
  /// Answers a command that ended here, if it has an id; otherwise a refusal is posted as `commandRefused`.
  static func answer(_ packet: consuming Packet, _ problem: StaticString?, _ ports: inout Ports) {
    guard !postAnswer(packet, problem, &ports), let problem else { return }
    ports.post(Event.commandRefused.rawValue) { $0.field("text", problem) }
  }

  /// Posts the answer to a command: done, or failed with a problem. False when the command has no id.
  static func postAnswer(
    _ packet: consuming Packet, _ problem: StaticString?, _ ports: inout Ports
  ) -> Bool {
    CommandAnswer.post(
      to: packet.samples(of: UInt8.self), problem, vendor: "dialog", event: Event.answer.rawValue, &ports)
  }
}

extension TurnRefusal {
  /// The reason, and the cure.
  var text: StaticString {
    switch self {
    case .ended: "the dialogue has ended"
    case .noButton: "the mode is duplex, which has no button: speak at any time"
    case .uninterruptible: "the service does not allow this reply to be interrupted; send it with \"force\""
    }
  }
}
