internal import MillraceDialog

/// The answers to commands.
extension Invariant {
  static let answers = Invariant(
    "answers", "each command with an id is answered once, also when it fails, and no other command is"
  ) { record, expected in
    var (sent, answered, failed): ([String: Int], [String: Int], [String: Int]) = ([:], [:], [:])
    for case .action(.commanded(let id)) in record.entries { sent[id, default: 0] += 1 }
    for answer in record.answers {
      answered[answer.id, default: 0] += 1
      if answer.error != nil { failed[answer.id, default: 0] += 1 }
    }
    // What a node has not read when it fails is not answered, and nothing is when the graph is stopped.
    let isCut = record.ending.failure != nil || record.entries.contains(.action(.stopped))
    return Set(sent.keys).union(answered.keys).sorted().compactMap { id in
      let (commands, answers) = (sent[id] ?? 0, answered[id] ?? 0)
      if answers > commands || answers < commands && !isCut {
        return "commands with the id \"\(id)\": \(commands), and answers to it: \(answers)"
      }
      let (failures, due) = (failed[id] ?? 0, expected.failedAnswers[id] ?? 0)
      guard answers == commands, failures != due else { return nil }
      return "\(failures) of \(answers) answers to \"\(id)\" report a failure, and not \(due)"
    }
  }
}

extension DialogAnswer {
  /// Why the command failed; nil: it was carried out.
  var error: DialogError? { if case .failed(let error) = result { error } else { nil } }
}
