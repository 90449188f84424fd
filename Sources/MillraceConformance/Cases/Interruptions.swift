internal import MillraceDialog
internal import Synchronization

/// The point of a dialogue at which something is done to it.
enum Position: String, CaseIterable {
  case connecting, listening, hearing, thinking, responding, answered, reconnecting

  /// Makes the double stay at this point.
  func prepare(_ script: inout ServiceScript, forGood: Bool) {
    switch self {
    case .connecting: script.fault = ServiceFault(.hold, at: .connecting)
    case .thinking: script.fault = ServiceFault(.hold, at: .thinking)
    case .responding: script.fault = ServiceFault(.hold, at: .midway)
    case .reconnecting: script.refusal = .busy(forGood ? .max : 5)
    case .listening, .hearing, .answered: break
    }
  }

  /// Brings a dialogue to this point.
  func reach(_ run: CaseRun) async throws {
    switch self {
    case .connecting: try await run.wait("connected") { $0.count("connected") == 1 }
    case .reconnecting: try await run.wait(for: .reconnecting)
    case .listening: try await run.wait(for: .listening)
    case .hearing:
      try await run.wait(for: .listening)
      run.speak(milliseconds: 2_000)
      try await run.wait("speechStarted") { $0.count("speechStarted") == 1 }
    case .thinking:
      try await run.wait(for: .listening)
      try run.ask()
      try await run.wait(for: .thinking)
    case .responding:
      try await run.wait(for: .listening)
      try run.ask()
      try await run.wait("audio of a reply") {
        $0.count("replyStarted") == 1 && ($0.hasAudio(of: 1) || run.traits.replies == nil)
      }
    case .answered:
      run.stage.finishesReplies.store(false, ordering: .releasing)
      try await run.wait(for: .listening)
      try run.ask()
      try await run.wait("the end of a reply") { $0.count("replyEnded") == 1 }
    }
  }

  func fit(_ made: ConformanceCase) -> ConformanceCase {
    var made = made
    made.needsVoice = self == .hearing
    made.needsPlayback = self == .answered
    return made
  }
}

/// Barge-in.
extension ConformanceCase {
  static let interruptions: [ConformanceCase] =
    Position.allCases.map { position in
      position.fit(
        ConformanceCase(
          "interrupted \(position.rawValue)",
          "no audio of the interrupted reply follows, and the dialogue continues",
          script: { position.prepare(&$0, forGood: false) },
          expect: { if position == .reconnecting { $0.expectsErrors = nil } },
          play: { run in
            try await position.reach(run)
            try await run.interrupt()
            if position == .connecting { return try await run.stop() }
            try run.finishReplies()
            if position == .thinking || position == .responding || position == .answered {
              try await run.wait(for: .listening, times: 2)
            }
            try await run.waitListening()
            try await run.turn()
            try await run.drain()
          }))
    } + [bargeIn]

  private static let bargeIn: ConformanceCase = {
    var made = ConformanceCase(
      "voice over a reply",
      "a barge-in detected by the service cancels the reply, and what is said is answered",
      script: { $0.fault = ServiceFault(.hold, at: .midway) },
      play: { run in
        try await Position.responding.reach(run)
        run.speak()
        try await run.wait("interrupted") { $0.count("interrupted") >= 1 }
        try await run.wait("an answer") { $0.count("replyStarted") == 2 && $0.count("replyEnded") >= 1 }
        try await run.waitListening()
        try await run.drain()
      })
    made.needsVoice = true
    return made
  }()
}

/// The graph or its input ends.
extension ConformanceCase {
  static let ends: [ConformanceCase] = Position.allCases.flatMap { position in
    let expect: @Sendable (inout CaseExpectation) -> Void = {
      if position == .reconnecting { $0.expectsErrors = nil }
    }
    var over = ConformanceCase(
      "input ends \(position.rawValue)",
      "the end of the user's audio ends nothing else; draining ends the dialogue",
      script: { position.prepare(&$0, forGood: true) }, expect: expect,
      play: { run in
        try await position.reach(run)
        run.endInput()
        if position == .listening || position == .answered {
          try run.finishReplies()
          try await run.waitListening()
          try await run.turn()
        }
        try await run.drain()
      })
    over = position.fit(over)
    over.needsInput = true
    return [
      position.fit(
        ConformanceCase(
          "stopped \(position.rawValue)", "stops within 2 s, and leaks nothing",
          script: { position.prepare(&$0, forGood: true) }, expect: expect,
          play: { run in
            try await position.reach(run)
            try await run.stop()
          })),
      over,
    ]
  }
}
