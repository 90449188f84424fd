internal import MillraceDialog

/// The order in which things are told.
extension Invariant {
  static let legible = Invariant("legible", "every event is one of the vocabulary, with its members") {
    record, _ in
    var findings = record.entries.compactMap { entry in
      if case .illegible(let text) = entry { text } else { nil }
    }
    if record.ending.lostEvents > 0 { findings.append("\(record.ending.lostEvents) events were lost") }
    return findings
  }

  static let legalStates = Invariant("legalStates", "the states told are a legal sequence") { record, _ in
    var findings: [String] = []
    var state = DialogState.idle
    for next in record.states {
      if !follows(next, state) { findings.append("\(next.rawValue) was told after \(state.rawValue)") }
      state = next
    }
    return findings
  }

  /// Whether a state may be told after another. One that is told again has not changed.
  static func follows(_ next: DialogState, _ state: DialogState) -> Bool {
    guard next != state else { return state != .closed }
    return switch (state, next) {
    case (.closed, _), (_, .idle): false
    case (_, .closed): true
    case (.idle, .connecting): true
    case (.idle, _): false
    case (_, .reconnecting): true
    case (.reconnecting, .connecting), (.reconnecting, .listening), (.connecting, .listening): true
    // A reply may take the place of another, and a question be asked at once.
    case (.listening, .thinking), (.listening, .responding): true
    case (.thinking, .responding), (.thinking, .listening): true
    case (.responding, .listening), (.responding, .thinking): true
    default: false
    }
  }

  static let beginnings = Invariant(
    "beginnings", "connected is told before conversationStarted, and that before listening"
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
        if isConnected { findings.append("connected was told twice for one connection") }
        isConnected = true
      case .conversationStarted:
        if !isConnected { findings.append("conversationStarted was told before connected") }
        hasStarted = true
      case .state(.listening), .state(.thinking), .state(.responding):
        if !isConnected { findings.append("\(word(event)) was told before connected") }
        if !hasStarted { findings.append("\(word(event)) was told before conversationStarted") }
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
    // A reply that was cut off may still be told to have ended, once.
    var mayEnd = false
    for entry in record.entries {
      guard case .told(let event) = entry else {
        // Nobody waits for the end of what is broken off from here.
        if entry == .did(.stopped) || entry == .did(.drained) { isOpen = false }
        continue
      }
      switch event {
      case .replyStarted:
        if isOpen { findings.append("replyStarted was told while a reply had not ended") }
        isOpen = true
        mayEnd = true
      case .replyEnded:
        if !mayEnd { findings.append("replyEnded was told without a replyStarted") }
        isOpen = false
        mayEnd = false
      case .interrupted, .error, .state(.reconnecting), .state(.closed), .kicked: isOpen = false
      default: break
      }
    }
    if isOpen { findings.append("a reply that had started was never told to have ended") }
    return findings
  }
}
