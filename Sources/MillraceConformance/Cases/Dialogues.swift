internal import MillraceDialog

/// Dialogues without faults.
extension ConformanceCase {
  static let dialogues: [ConformanceCase] = {
    var cases = [
      ConformanceCase(
        "dialogue", "three turns with all states in order",
        expect: { $0.completeReplies = [1, 2, 3] },
        play: { run in
          try await run.wait(for: .listening)
          for _ in 1...3 { try await run.turn() }
          try await run.drain()
        }),
      ConformanceCase(
        "burst", "a reply of 5 s in one burst is delivered completely",
        script: {
          $0.replyMilliseconds = 5_000
          $0.speed = 1_000
          $0.chunk = 60_000
        }, expect: { $0.completeReplies = [1] }, play: oneTurn),
      ConformanceCase(
        "crumbs", "a reply in messages of one byte is delivered completely",
        script: {
          $0.replyMilliseconds = 100
          $0.speed = 1_000
          $0.chunk = 1
        }, expect: { $0.completeReplies = [1] }, play: oneTurn),
    ]
    var voice = ConformanceCase(
      "voice", "speech reaches the service completely, and is answered",
      expect: {
        $0.completeReplies = [1]
        $0.receivesAllSpeech = true
      },
      play: { run in
        try await run.wait(for: .listening)
        run.speak()
        try await run.wait("the end of the speech") { $0.count("speechEnded") == 1 }
        try await run.wait("the end of the answer") { $0.count("replyEnded") == 1 }
        try await run.wait(for: .listening, times: 2)
        try await run.drain()
      })
    voice.needsVoice = true
    cases.append(voice)
    return cases
  }()

  static let oneTurn: @Sendable (CaseRun) async throws -> Void = { run in
    try await run.wait(for: .listening)
    try await run.turn()
    try await run.drain()
  }

  /// A turn that a fault interrupts at some point, and a complete one after it.
  static let brokenTurn: @Sendable (CaseRun) async throws -> Void = { run in
    try await run.wait(for: .listening)
    try run.ask()
    try await run.wait("the broken turn") { $0.report.turns >= 1 }
    try await run.wait("listening after it") { record in
      record.states.count { $0 == .listening } >= 2 && record.states.last == .listening
    }
    try await run.turn()
    try await run.drain()
  }
}

/// Cases about the beginning of a dialogue.
extension ConformanceCase {
  static let openings: [ConformanceCase] = [
    ConformanceCase(
      "slow to begin", "waits for a service that takes half a second to start the dialogue",
      script: { $0.delay = 500 },
      play: oneTurn),
    ConformanceCase(
      "busy", "is refused three times, reports it, and retries until it is accepted",
      script: { $0.refusal = .busy(3) },
      expect: {
        $0.expectsErrors = true
        $0.losses = 1
      }, play: oneTurn),
    ConformanceCase(
      "wrong key", "fails with a message, after one connection", script: { $0.refusal = .key },
      expect: {
        $0.fails = true
        $0.expectsErrors = true
        $0.maxConnections = 1
      }, play: { try await $0.finish("the failure") }),
    ConformanceCase(
      "mute",
      "gives up an address that accepts connections but sends nothing, reports it, and can still be stopped",
      script: { $0.isSilent = true }, expect: { $0.expectsErrors = true },
      play: { run in
        try await run.wait(for: .reconnecting)
        try await run.stop()
      }),
  ]
}
