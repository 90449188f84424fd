internal import MillraceConformance
internal import MillraceDialog
internal import MillraceNet

/// What goes wrong on purpose.
extension DoubleVisit {
  /// A text that any client must refuse: larger than whatever the service says.
  private static let oversized = 2 << 20

  /// Does what the turn says is to go wrong at this place, once. True when it does not go on.
  func misbehave(at place: BailianScenario.Fault.Place) -> Bool {
    guard let fault = turn.fault, fault.place == place else { return false }
    return misbehave(fault)
  }

  func misbehave(_ fault: BailianScenario.Fault) -> Bool {
    double.note("# \(fault.kind.rawValue)")
    switch fault.kind {
    case .drop: drop()
    case .stall: isStalled = true
    case .hold: break
    case .kick: goodBye()
    case .expire:
      double.change { $0.hasExpired = true }
      drop()
    case .oversized:
      let words = String(repeating: "a", count: Self.oversized)
      _ = socket.send(text: JSONValue.object(["header": ["event": .string(words)]]).text)
    case .error:
      tellError(fault.code, fault.name, "as the scenario says")
      breakOff()
    case .fail:
      send(
        "task-failed",
        header: ["error_code": .string(fault.name), "error_message": "as the scenario says"], output: nil)
      double.note("< task-failed")
      state = .over
      socket.close(code: 1007)
    case .malformed:
      _ = socket.send(text: #"{"header":{"event":""# + ServiceFault.words)
      return false
    case .unknown:
      sayUnknown()
      return false
    case .repeated, .outOfOrder: return false
    }
    return true
  }

  private func drop() {
    state = .over
    reply += 1
    socket.cancel()
  }

  private func sayUnknown() {
    let message: JSONValue = [
      "header": ["event": "result-generated", "attributes": .object([]), "task_id": .string(task)],
      "payload": [
        "output": [
          "event": "Astonished", "dialog_id": .string(dialogID), "why": .string(ServiceFault.words),
        ]
      ],
    ]
    _ = socket.send(text: message.text)
    let keeps = double.scenario.keeps
    double.change { if keeps { $0.oddities.append(message) } }
    double.note("< Astonished")
  }
}
