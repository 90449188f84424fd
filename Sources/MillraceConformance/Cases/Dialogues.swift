internal import MillraceDialog

/// Nothing goes wrong.
extension ConformanceCase {
  static let dialogues: [ConformanceCase] = {
    var cases = [
      ConformanceCase(
        "dialogue", "three turns, every state in its order",
        expect: { $0.wholeReplies = [1, 2, 3] },
        play: { rehearsal in
          try await rehearsal.wait(for: .listening)
          for _ in 1...3 { try await rehearsal.turn() }
          try await rehearsal.drain()
        }),
      ConformanceCase(
        "burst", "a reply of 5 s in one burst comes out whole",
        script: {
          $0.replyMilliseconds = 5_000
          $0.speed = 1_000
          $0.chunk = 60_000
        }, expect: { $0.wholeReplies = [1] }, play: oneTurn),
      ConformanceCase(
        "crumbs", "a reply in messages of one byte comes out whole",
        script: {
          $0.replyMilliseconds = 100
          $0.speed = 1_000
          $0.chunk = 1
        }, expect: { $0.wholeReplies = [1] }, play: oneTurn),
    ]
    var voice = ConformanceCase(
      "voice", "what is spoken is heard, all of it, and answered",
      expect: {
        $0.wholeReplies = [1]
        $0.hearsAll = true
      },
      play: { rehearsal in
        try await rehearsal.wait(for: .listening)
        rehearsal.speak()
        try await rehearsal.wait("the end of speech") { $0.count("speechEnded") == 1 }
        try await rehearsal.wait("the answer's end") { $0.count("replyEnded") == 1 }
        try await rehearsal.wait(for: .listening, times: 2)
        try await rehearsal.drain()
      })
    voice.needsVoice = true
    cases.append(voice)
    return cases
  }()

  static let oneTurn: @Sendable (Rehearsal) async throws -> Void = { rehearsal in
    try await rehearsal.wait(for: .listening)
    try await rehearsal.turn()
    try await rehearsal.drain()
  }

  /// A turn of which nobody knows how far it comes, and whole ones behind it.
  static let brokenTurn: @Sendable (Rehearsal) async throws -> Void = { rehearsal in
    try await rehearsal.wait(for: .listening)
    try rehearsal.ask()
    try await rehearsal.wait("the turn that is broken") { $0.sight.turns >= 1 }
    try await rehearsal.wait("listening behind it") { record in
      record.states.count { $0 == .listening } >= 2 && record.states.last == .listening
    }
    try await rehearsal.turn()
    try await rehearsal.drain()
  }
}

/// The beginning.
extension ConformanceCase {
  static let openings: [ConformanceCase] = [
    ConformanceCase(
      "slow to begin", "waits for a service that takes half a second to begin", script: { $0.delay = 500 },
      play: oneTurn),
    ConformanceCase(
      "busy", "is refused three times, tells of it, and comes again until it is let in",
      script: { $0.refusal = .busy(3) },
      expect: {
        $0.errs = true
        $0.losses = 1
      }, play: oneTurn),
    ConformanceCase(
      "wrong key", "fails in words, with one visit", script: { $0.refusal = .key },
      expect: {
        $0.fails = true
        $0.errs = true
        $0.mostVisits = 1
      }, play: { try await $0.finish("the failure") }),
    ConformanceCase(
      "mute", "gives up an address that takes connections and says nothing, tells of it, and still stops",
      script: { $0.isMute = true }, expect: { $0.errs = true },
      play: { rehearsal in
        try await rehearsal.wait(for: .reconnecting)
        try await rehearsal.stop()
      }),
  ]
}
