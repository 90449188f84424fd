internal import MillraceDialog

/// The order of events.
extension Invariant {
  static let vocabulary = Invariant("vocabulary", "every event belongs to the vocabulary, with its members") {
    record, _ in
    var findings = record.entries.compactMap { entry in
      if case .invalid(let text) = entry { text } else { nil }
    }
    if record.ending.lostEvents > 0 { findings.append("\(record.ending.lostEvents) events were lost") }
    return findings
  }

  static let legalStates = Invariant("legalStates", "the states are a legal sequence") { record, _ in
    var findings: [String] = []
    var state = DialogState.idle
    for next in record.states {
      if !follows(next, state) { findings.append("\(next.rawValue) after \(state.rawValue)") }
      state = next
    }
    return findings
  }

  /// True when a state may follow another. A repeated state is not a change.
  static func follows(_ next: DialogState, _ state: DialogState) -> Bool {
    guard next != state else { return state != .closed }
    return switch (state, next) {
    case (.closed, _), (_, .idle): false
    case (_, .closed): true
    case (.idle, .connecting): true
    case (.idle, _): false
    case (_, .reconnecting): true
    case (.reconnecting, .connecting), (.reconnecting, .listening), (.connecting, .listening): true
    // A reply may replace another, and a question may be asked at once.
    case (.listening, .thinking), (.listening, .responding): true
    case (.thinking, .responding), (.thinking, .listening): true
    case (.responding, .listening), (.responding, .thinking): true
    default: false
    }
  }

  static let opening = Invariant(
    "opening", "connected precedes conversationStarted, which precedes listening"
  ) { record, _ in
    var findings: [String] = []
    var isConnected = false
    var hasStarted = false
    for event in record.events {
      switch event {
      case .state(.connecting), .state(.reconnecting):
        isConnected = false
        hasStarted = false
      case .connected:
        if isConnected { findings.append("connected twice for one connection") }
        isConnected = true
      case .conversationStarted:
        if !isConnected { findings.append("conversationStarted before connected") }
        hasStarted = true
      case .state(.listening), .state(.thinking), .state(.responding):
        if !isConnected { findings.append("\(word(event)) before connected") }
        if !hasStarted { findings.append("\(word(event)) before conversationStarted") }
      default: break
      }
    }
    return findings
  }

  private static func word(_ event: DialogEvent) -> String {
    if case .state(let state) = event { state.rawValue } else { event.name }
  }

  static let replyEnds = Invariant(
    "replyEnds", "each replyStarted has one replyEnded, or an interruption, an error or a loss"
  ) { record, _ in
    var findings: [String] = []
    var isOpen = false
    // The end of an interrupted reply may still be reported, once.
    var mayEnd = false
    for entry in record.entries {
      guard case .event(let event) = entry else {
        // The end of a reply that is cut off here is not expected.
        if entry == .action(.stopped) || entry == .action(.drained) { isOpen = false }
        continue
      }
      switch event {
      case .replyStarted:
        if isOpen { findings.append("replyStarted before the last reply ended") }
        isOpen = true
        mayEnd = true
      case .replyEnded:
        if !mayEnd { findings.append("replyEnded without replyStarted") }
        isOpen = false
        mayEnd = false
      case .interrupted, .error, .state(.reconnecting), .state(.closed), .kicked: isOpen = false
      default: break
      }
    }
    if isOpen { findings.append("replyStarted without replyEnded") }
    return findings
  }
}
