internal import MillraceDialog

/// Errors, and how a dialogue ends.
extension Invariant {
  static let errors = Invariant(
    "errors", "errors have vendor, category, reaction and text, and occur only when something is wrong"
  ) { record, expected in
    var findings: [String] = []
    for error in record.failures {
      if error.vendor != expected.traits.vendor {
        findings.append("an error has vendor \"\(error.vendor)\", not \"\(expected.traits.vendor)\"")
      }
      if error.text.isEmpty { findings.append("an error has no text") }
    }
    if expected.expectsErrors == true && record.errors.isEmpty && record.ending.failure == nil {
      findings.append("a fault was not reported")
    }
    if expected.expectsErrors == false, let error = record.errors.first {
      findings.append("an error was reported without a fault: \(error)")
    }
    return findings
  }

  static let redactedErrors = Invariant("redactedErrors", "no error contains a key or what a user said") {
    record, expected in
    var texts = record.failures.map { "\($0.text) \($0.name ?? "")" }
    if let failure = record.ending.failure { texts.append(failure) }
    var findings: [String] = []
    let keys = [expected.traits.key] + (expected.traits.freshKey.map { [$0] } ?? [])
    if texts.contains(where: { text in keys.contains { text.contains($0) } }) {
      findings.append("an error contains the key")
    }
    if texts.contains(where: { $0.contains(ServiceFault.userText) }) {
      findings.append("an error contains the content of a message")
    }
    return findings
  }

  static let recovery = Invariant("recovery", "after a loss, reconnecting is reported, and then listening") {
    record, expected in
    var findings: [String] = []
    if record.losses < expected.losses {
      findings.append(
        "\(expected.losses) connections were lost, and reconnecting was reported \(record.losses) times")
    }
    if expected.losses == 0 && record.losses > 0 && expected.expectsErrors == false {
      findings.append("a working connection was given up")
    }
    let last = record.states.lastIndex(of: .reconnecting)
    if !expected.fails, expected.losses > 0, let last, !record.states[last...].contains(.listening) {
      findings.append("listening was not reported after reconnecting")
    }
    return findings
  }

  static let refusal = Invariant("refusal", "a refusal fails the node with a message, and is not retried") {
    record, expected in
    var findings: [String] = []
    switch (expected.fails, record.ending.failure) {
    case (true, nil): findings.append("the node did not fail")
    case (true, let text?) where text.isEmpty: findings.append("the node failed without a message")
    case (false, let text?): findings.append("the node failed: \(text)")
    default: break
    }
    if let most = expected.maxConnections, record.report.connections > most {
      findings.append("the node connected \(record.report.connections) times, at most \(most) were allowed")
    }
    return findings
  }

  static let sessionEnd = Invariant(
    "sessionEnd", "draining a dialogue closes the session properly, once"
  ) { record, expected in
    let count = record.report.sessionEnds
    if expected.sessions == 1 {
      if count > 1 { return ["the session was closed \(count) times"] }
      return record.mustCloseSession && count == 0 ? ["the session was not closed properly"] : []
    }
    return count == expected.sessions
      ? [] : ["\(expected.sessions) sessions were closed \(count) times"]
  }

  static let ending = Invariant("ending", "the node stops within the 2 s a graph has") { record, _ in
    record.ending.detached.map { "\"\($0)\" did not stop in time" }
  }

  static let blocks = Invariant("blocks", "no block is leaked") { record, _ in
    record.ending.leakedBlocks == 0 ? [] : ["\(record.ending.leakedBlocks) blocks were not returned"]
  }

  static let unknownMessages = Invariant(
    "unknownMessages", "unknown messages are posted as unknown, complete"
  ) {
    record, _ in
    let posted = record.events.compactMap { event in if case .unknown(let raw) = event { raw } else { nil } }
    let missing = record.report.unknownMessages.count { !posted.contains($0) }
    return missing == 0
      ? [] : ["\(missing) unknown messages were not posted completely"]
  }

  static let serviceProtocol = Invariant("protocol", "the node does nothing that the service forbids") {
    record, _ in
    record.report.violations
  }
}

extension ServiceRecord {
  /// The errors reported, and those in answers to commands.
  var failures: [DialogError] { errors + answers.compactMap(\.error) }

  /// The graph was drained during a dialogue.
  var mustCloseSession: Bool {
    guard let drained = entries.firstIndex(of: .action(.drained)) else { return false }
    switch ServiceRecord(Array(entries[..<drained])).states.last {
    case .listening, .thinking, .responding: return true
    default: return false
    }
  }
}
