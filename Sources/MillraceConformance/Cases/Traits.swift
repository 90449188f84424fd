internal import MillraceDialog
internal import MillraceJSON

/// What only some services have: gates, things to display, participants, keys that are renewed, streams, shared connections, answers to
/// commands.
extension ConformanceCase {
  static let traits: [ConformanceCase] =
    [muted, uninterruptible, media] + KickReason.allCases.map(kicked) + [
      renewal, stream, peers, sharing, closedSession, answers, lateAnswers,
    ]

  private func needing(_ reason: @escaping @Sendable (ServiceTraits) -> String?) -> ConformanceCase {
    var made = self
    made.reasonToSkipTraits = reason
    return made
  }

  // MARK: Gates

  private static let muted: ConformanceCase = {
    var made = ConformanceCase(
      "gate muted", "what is said while the service mutes the microphone never reaches it, the rest does",
      script: { $0.gate = .muted },
      expect: {
        $0.receivesAllSpeech = true
        $0.reports = ["gate"]
      },
      play: { run in
        try await run.wait(for: .listening)
        try await run.wait(for: .muted, isOn: true)
        run.speak()
        try await run.waitSpoken()
        try await run.turn()
        try await run.wait(for: .muted, isOn: false)
        run.speak()
        try await run.wait("the end of the speech") { $0.count("speechEnded") >= 1 }
        try await run.wait("an answer to the speech") { $0.count("replyEnded") == 2 }
        try await run.waitListening()
        try await run.drain()
      }
    ).needing { $0.gates.contains(.muted) ? nil : "the service does not mute the microphone" }
    made.needsVoice = true
    return made
  }()

  private static let uninterruptible: ConformanceCase = {
    var made = ConformanceCase(
      "gate uninterruptible", "a voice does not interrupt a reply that the service protects",
      script: { $0.gate = .uninterruptible },
      expect: {
        $0.completeReplies = [1]
        $0.forbidsInterruption = true
        $0.reports = ["gate"]
      },
      play: { run in
        try await run.wait(for: .listening)
        try run.ask()
        try await run.wait(for: .uninterruptible, isOn: true)
        run.speak()
        try await run.wait("the end of the reply") { $0.count("replyEnded") == 1 }
        try await run.wait(for: .uninterruptible, isOn: false)
        try await run.waitListening()
        try await run.drain()
      }
    ).needing { $0.gates.contains(.uninterruptible) ? nil : "the service does not protect its replies" }
    made.needsVoice = true
    return made
  }()

  // MARK: What the service reports

  private static let media = ConformanceCase(
    "media", "things to display are posted as media, unchanged", script: { $0.sendsMedia = true },
    expect: { $0.reports = ["media"] }, play: oneTurn
  ).needing { $0.sendsMedia ? nil : "the service sends nothing to display" }

  private static func kicked(_ reason: KickReason) -> ConformanceCase {
    ConformanceCase(
      "kicked, \(reason.rawValue)",
      "reports the reason and that the session is closed, and does not reconnect",
      script: {
        $0.fault = ServiceFault(.kick, at: .listening)
        $0.fault?.reason = reason
      },
      expect: {
        $0.maxConnections = 1
        $0.reports = ["kicked"]
      },
      play: { run in
        try await run.wait(for: .closed)
        try await run.drain()
      }
    ).needing { $0.kickReasons.contains(reason) ? nil : "the service does not state this reason" }
  }

  private static let peers = ConformanceCase(
    "participants", "other participants are reported as they come and go", script: { $0.hasPeers = true },
    expect: { $0.reports = ["peer"] },
    play: { run in
      try await run.wait("another participant") { $0.count("peer") >= 1 }
      try await oneTurn(run)
    }
  ).needing { $0.hasRooms ? nil : "the service has no other participants" }

  // MARK: Keys

  private static let renewal = ConformanceCase(
    "key expires soon", "a fresh key replaces the one that expires, and the dialogue continues",
    script: { $0.announcesExpiry = true },
    expect: {
      $0.maxConnections = 1
      $0.reports = ["authWillExpire"]
    },
    play: { run in
      try await run.wait("the announcement") { $0.count("authWillExpire") == 1 }
      try run.command(.refreshAuth(token: run.traits.freshKey))
      try await run.wait("renewal of the key") { $0.report.renewals == 1 }
      try await run.waitListening()
      try await run.turn()
      try await run.drain()
    }
  ).needing { $0.freshKey != nil ? nil : "the service does not announce that a key expires" }

  // MARK: Streams

  private static let stream = ConformanceCase(
    "reply as a stream", "the address of the stream is known before the reply begins",
    play: { run in
      try await run.wait(for: .listening)
      for _ in 1...2 { try await run.turn() }
      try await run.drain()
    }
  ).needing { $0.streamsReplies ? nil : "replies are not a stream" }

  // MARK: Shared connections

  private static let sharing = ConformanceCase(
    "shared connection", "two nodes hold a dialogue each over one connection, and the last closes it",
    expect: {
      $0.maxConnections = 1
      $0.sessions = 2
    },
    play: { run in
      let other = try await run.startNeighbour()
      for each in [run, other] { try await each.wait(for: .listening) }
      for each in [run, other, run] { try await each.turn() }
      try await run.drain(sessionEnds: 1)
      try await other.turn()
      try await other.drain(sessionEnds: 2)
    }
  ).needing { $0.sharesConnections ? nil : "nodes do not share connections" }

  private static let closedSession = ConformanceCase(
    "shared connection, one session fails",
    "a session that the service closes begins again, and the other on the same connection does not notice",
    script: { $0.closesSession = true },
    expect: {
      $0.maxConnections = 1
      $0.sessions = 2
      $0.expectsErrors = nil
    },
    play: { run in
      let other = try await run.startNeighbour()
      for each in [run, other] { try await each.wait(for: .listening) }
      try run.ask()
      try await run.wait("the end of its session") { !$0.errors.isEmpty }
      try await other.turn()
      try await run.wait(for: .listening, times: 2)
      try await run.waitListening()
      for each in [run, other] { try await each.turn() }
      guard other.record.errors.isEmpty, !other.record.states.contains(.reconnecting) else {
        throw CaseFailure("the end of one session disturbed the other")
      }
      try await run.drain(sessionEnds: 1)
      try await other.turn()
      try await other.drain(sessionEnds: 2)
    }
  ).needing { $0.closesSessions ? nil : "the double closes no single session of a connection" }

  // MARK: Answers

  private static let noAnswers = "the node answers no commands"

  private static let answers = ConformanceCase(
    "answers", "a command with an id is answered once, an invalid one as failed, and one without an id never",
    expect: { $0.failedAnswers = ["invalid": 1] },
    play: { run in
      try await run.wait(for: .listening)
      // Its name is missing.
      try run.send(["command": "extra"], id: "invalid")
      try await run.turn(id: "question")
      try await run.turn()
      try await run.drain()
    }
  ).needing { $0.answers == nil ? noAnswers : nil }

  private static let lateAnswers = ConformanceCase(
    "answers at the end",
    "a second command with the id of one that waits is refused; what still waits when the dialogue ends has failed",
    script: { $0.fault = ServiceFault(.hold, at: .thinking) },
    expect: { $0.failedAnswers = ["waiting": 2] },
    play: { run in
      try await Position.thinking.reach(run)
      for _ in 1...2 { try run.ask(id: "waiting") }
      try run.command(.hangUp(), id: "end")
      try await run.wait(for: .closed)
      try await run.drain()
    }
  ).needing { traits in
    guard let answers = traits.answers else { return noAnswers }
    if traits.turn != .words { return "the node takes no questions" }
    return answers == .whenListening ? nil : "the node answers every command at once"
  }
}
