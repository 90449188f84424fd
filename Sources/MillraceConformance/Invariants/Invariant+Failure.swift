internal import MillraceDialog

/// What goes wrong, and how it ends.
extension Invariant {
  static let errors = Invariant(
    "errors", "errors carry vendor, category, reaction and words, and come when something is wrong"
  ) { record, expected in
    var findings: [String] = []
    for error in record.errors {
      if error.vendor != expected.traits.vendor {
        findings.append("an error is of \"\(error.vendor)\", not of \"\(expected.traits.vendor)\"")
      }
      if error.text.isEmpty { findings.append("an error has no words") }
    }
    if expected.errs == true && record.errors.isEmpty && record.ending.failure == nil {
      findings.append("nothing was told of what went wrong")
    }
    if expected.errs == false, let error = record.errors.first {
      findings.append("an error was told where nothing was wrong: \(error)")
    }
    return findings
  }

  static let silentErrors = Invariant("silentErrors", "no error has a key or what a user said in it") {
    record, expected in
    var texts = record.errors.map { "\($0.text) \($0.name ?? "")" }
    if let failure = record.ending.failure { texts.append(failure) }
    var findings: [String] = []
    if texts.contains(where: { $0.contains(expected.traits.key) }) {
      findings.append("an error has the key in it")
    }
    if texts.contains(where: { $0.contains(ServiceFault.words) }) {
      findings.append("an error has in it what a message said")
    }
    return findings
  }

  static let recovery = Invariant("recovery", "after a loss reconnecting is told, and then listening again") {
    record, expected in
    var findings: [String] = []
    if record.losses < expected.losses {
      findings.append(
        "\(expected.losses) connections were lost, and reconnecting was told \(record.losses) times")
    }
    if expected.losses == 0 && record.losses > 0 && expected.errs == false {
      findings.append("a connection was given up that nobody had broken")
    }
    let last = record.states.lastIndex(of: .reconnecting)
    if !expected.fails, expected.losses > 0, let last, !record.states[last...].contains(.listening) {
      findings.append("listening was not told after reconnecting")
    }
    return findings
  }

  static let refusal = Invariant("refusal", "a refusal fails the node in words, and is not asked for again") {
    record, expected in
    var findings: [String] = []
    switch (expected.fails, record.ending.failure) {
    case (true, nil): findings.append("the node did not fail")
    case (true, let words?) where words.isEmpty: findings.append("the node failed without words")
    case (false, let words?): findings.append("the node failed: \(words)")
    default: break
    }
    if let most = expected.mostVisits, record.sight.visits > most {
      findings.append("it came \(record.sight.visits) times, \(most) at most were due")
    }
    return findings
  }

  static let goodBye = Invariant(
    "goodBye", "a dialogue that is drained while it stands ends by the service's own good-bye, said once"
  ) { record, _ in
    var findings: [String] = []
    let count = record.sight.goodByes
    if count > 1 { findings.append("good-bye was said \(count) times") }
    if record.isDueGoodBye && count == 0 { findings.append("the dialogue ended without a good-bye") }
    return findings
  }

  static let ending = Invariant("ending", "the node stops within the 2 s a graph has") { record, _ in
    record.ending.detached.map { "\"\($0)\" did not stop in time" }
  }

  static let blocks = Invariant("blocks", "no block is kept") { record, _ in
    record.ending.leakedBlocks == 0 ? [] : ["\(record.ending.leakedBlocks) blocks did not come back"]
  }

  static let nothingLost = Invariant("nothingLost", "what nobody knows comes out as unknown, whole") {
    record, _ in
    let told = record.events.compactMap { event in if case .unknown(let raw) = event { raw } else { nil } }
    let missing = record.sight.oddities.count { !told.contains($0) }
    return missing == 0
      ? [] : ["\(missing) messages nobody knows were not told as unknown with all they hold"]
  }

  static let obedience = Invariant("obedience", "the service has nothing to complain of") { record, _ in
    record.sight.violations
  }
}

extension ServiceRecord {
  /// The graph was drained while a dialogue stood.
  var isDueGoodBye: Bool {
    guard let drained = entries.firstIndex(of: .did(.drained)) else { return false }
    switch ServiceRecord(Array(entries[..<drained])).states.last {
    case .listening, .thinking, .responding: return true
    default: return false
    }
  }
}
