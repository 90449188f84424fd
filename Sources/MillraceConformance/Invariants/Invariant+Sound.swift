internal import MillraceDialog

/// The sound of replies.
extension Invariant {
  static let utterances = Invariant(
    "utterances", "each utterance ends with endOfUtterance, and as many as replyEnded says"
  ) { record, expected in
    guard expected.traits.endsUtterances, expected.traits.replies != nil else { return [] }
    var findings: [String] = []
    var open: (reply: Int, generation: UInt32)?
    for sound in record.sounds {
      for reply in sound.replies {
        if let open, open.reply != reply, open.generation == sound.generation {
          findings.append("sound of reply \(reply) came before the end of reply \(open.reply)")
        }
        open = (reply, sound.generation)
      }
      if sound.endsUtterance { open = nil }
    }
    let ends = record.sounds.count(where: \.endsUtterance)
    let told = record.events.reduce(0) { count, event in
      if case .replyEnded(_, let utterances) = event { count + utterances } else { count }
    }
    // An interruption may take the mark of an end that was told; nothing may add one.
    if ends > told { findings.append("\(ends) utterances ended, and replyEnded told of \(told)") }
    let cuts = record.count("interrupted") + record.interruptions.count + record.losses
    if ends + cuts < told { findings.append("replyEnded told of \(told) utterances, and \(ends) ended") }
    return findings
  }

  static let wholeSound = Invariant("wholeSound", "all sound of a reply that nobody cut off comes out") {
    record, expected in
    guard expected.traits.replies != nil else { return [] }
    return expected.wholeReplies.sorted().compactMap { reply in
      let sent = record.sight.soundBytes[reply] ?? 0
      let came = record.sounds.reduce(0) { $1.replies == [reply] ? $0 + $1.bytes : $0 }
      return sent == came && sent > 0
        ? nil : "of reply \(reply) \(sent) bytes were sent, and \(came) came out"
    }
  }

  static let wholeVoice = Invariant("wholeVoice", "all that the user says comes to the service, once") {
    record, expected in
    guard expected.hearsAll else { return [] }
    let said = record.entries.reduce(0) { count, entry in
      if case .did(.spoke(let samples)) = entry { count + samples } else { count }
    }
    let heard = record.sight.voiceSamples
    return said == heard && said > 0
      ? [] : ["the user said \(said) samples that are not silence, and \(heard) came to the service"]
  }

  static let stale = Invariant("stale", "after an interruption no sample of the old reply comes") {
    record, expected in
    guard expected.traits.replies != nil else { return [] }
    var findings: [String] = []
    var generations: [Int: UInt32] = [:]
    for sound in record.sounds {
      for reply in sound.replies {
        if let first = generations[reply], first != sound.generation {
          findings.append("sound of reply \(reply) came as part of two replies of the graph")
        }
        generations[reply] = sound.generation
      }
    }
    for (void, generation) in record.interruptions {
      for (reply, born) in generations.sorted(by: { $0.key < $1.key })
      where reply <= void && born > generation {
        findings.append("sound of reply \(reply) came after it was voided")
      }
    }
    return findings
  }
}

extension ServiceRecord {
  var interruptions: [(upTo: Int, generation: UInt32)] {
    entries.compactMap { entry in
      if case .did(.interrupted(let reply, let generation)) = entry { (reply, generation) } else { nil }
    }
  }

  /// Connections that were lost and looked for again.
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
