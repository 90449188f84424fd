internal import MillraceDialog

/// The audio of replies.
extension Invariant {
  static let utterances = Invariant(
    "utterances", "each utterance ends with endOfUtterance, and replyEnded states their number"
  ) { record, expected in
    guard expected.traits.endsUtterances, expected.traits.replies != nil else { return [] }
    var findings: [String] = []
    var open: (reply: Int, generation: UInt32)?
    for sound in record.audio {
      for reply in sound.replies {
        if let open, open.reply != reply, open.generation == sound.generation {
          findings.append("audio of reply \(reply) before the end of reply \(open.reply)")
        }
        open = (reply, sound.generation)
      }
      if sound.endsUtterance { open = nil }
    }
    let ends = record.audio.count(where: \.endsUtterance)
    let announced = record.events.reduce(0) { count, event in
      if case .replyEnded(_, let utterances) = event { count + utterances } else { count }
    }
    // An interruption may discard the mark of an announced end; nothing may add one.
    if ends > announced { findings.append("\(ends) utterances ended, and replyEnded announced \(announced)") }
    // So may a graph that is stopped.
    let stops = record.entries.contains(.action(.stopped)) ? 1 : 0
    let cuts = record.count("interrupted") + record.interruptions.count + record.losses + stops
    if ends + cuts < announced {
      findings.append("replyEnded announced \(announced) utterances, and \(ends) ended")
    }
    return findings
  }

  static let completeReplies = Invariant(
    "completeReplies", "the audio of a reply that is not cut off is delivered completely"
  ) {
    record, expected in
    guard expected.traits.replies != nil else { return [] }
    return expected.completeReplies.sorted().compactMap { reply in
      let sent = record.report.audioBytes[reply] ?? 0
      let received = record.audio.reduce(0) { $1.replies == [reply] ? $0 + $1.bytes : $0 }
      return sent == received && sent > 0
        ? nil : "of reply \(reply) \(sent) bytes were sent, and \(received) delivered"
    }
  }

  static let completeSpeech = Invariant(
    "completeSpeech", "the user's speech reaches the service completely, once; none of it while it is muted"
  ) {
    record, expected in
    guard expected.receivesAllSpeech else { return [] }
    let said = record.speechWhileUnmuted
    let heard = record.report.speechSamples
    return said == heard && said > 0
      ? [] : ["the user spoke \(said) samples that are not silence, and \(heard) reached the service"]
  }

  static let uninterrupted = Invariant("uninterrupted", "a reply that cannot be interrupted is not") {
    record, expected in
    guard expected.forbidsInterruption, record.count("interrupted") > 0 else { return [] }
    return ["a reply was interrupted \(record.count("interrupted")) times"]
  }

  static let stale = Invariant("stale", "after an interruption no audio of the old reply is delivered") {
    record, expected in
    guard expected.traits.replies != nil else { return [] }
    var findings: [String] = []
    var generations: [Int: UInt32] = [:]
    for sound in record.audio {
      for reply in sound.replies {
        if let first = generations[reply], first != sound.generation {
          findings.append("audio of reply \(reply) was delivered as part of two replies of the graph")
        }
        generations[reply] = sound.generation
      }
    }
    for (cancelled, generation) in record.interruptions {
      for (reply, born) in generations.sorted(by: { $0.key < $1.key })
      where reply <= cancelled && born > generation {
        findings.append("audio of reply \(reply) was delivered after its cancellation")
      }
    }
    return findings
  }
}

extension ServiceRecord {
  var interruptions: [(upTo: Int, generation: UInt32)] {
    entries.compactMap { entry in
      if case .action(.interrupted(let reply, let generation)) = entry { (reply, generation) } else { nil }
    }
  }

  /// Samples that the user spoke while the service had not muted the microphone.
  var speechWhileUnmuted: Int {
    var count = 0
    var isMuted = false
    for entry in entries {
      switch entry {
      case .event(.gate(.muted, let isOn, _)): isMuted = isOn
      case .action(.spoke(let samples)) where !isMuted: count += samples
      default: break
      }
    }
    return count
  }

  /// Connections that were lost and reopened.
  var losses: Int {
    var count = 0
    var last = DialogState.idle
    for state in states {
      if state == .reconnecting && last != .reconnecting { count += 1 }
      last = state
    }
    return count
  }
}
