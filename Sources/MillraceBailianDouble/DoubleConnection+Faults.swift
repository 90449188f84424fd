internal import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// The faults of a scenario.
extension DoubleConnection {
  /// A message that any client must refuse, as it is larger than any of the service.
  private static let oversized = 2 << 20
  /// The name of an error for which the scenario has none.
  private static let errorName = "InternalLLMError"

  /// Applies the turn's fault if this is its place. True when the turn does not continue.
  func misbehave(at place: ServiceFault.Place) -> Bool {
    guard let fault = turn.fault, fault.place == place else { return false }
    return misbehave(fault)
  }

  func misbehave(_ fault: ServiceFault) -> Bool {
    double.note("# \(fault.kind.rawValue)")
    switch fault.kind {
    case .drop: drop()
    case .stall: isStalled = true
    case .hold: break
    case .kick: endSession()
    case .expire:
      double.expireKeys()
      drop()
    case .oversized:
      let words = String(repeating: "a", count: Self.oversized)
      _ = socket.send(text: JSONValue.object(["header": ["event": .string(words)]]).text)
    case .error:
      sendError(fault.code ?? 500, fault.name ?? Self.errorName, "as the scenario requires")
      breakOff()
    case .fail:
      send(
        "task-failed",
        header: [
          "error_code": .string(fault.name ?? Self.errorName), "error_message": "as the scenario requires",
        ], output: nil)
      double.note("< task-failed")
      state = .over
      socket.close(code: 1007)
    case .malformed:
      _ = socket.send(text: #"{"header":{"event":""# + ServiceFault.userText)
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
          "event": "Astonished", "dialog_id": .string(dialogID), "why": .string(ServiceFault.userText),
        ]
      ],
    ]
    _ = socket.send(text: message.text)
    double.noteUnknown(message)
    double.note("< Astonished")
  }
}
