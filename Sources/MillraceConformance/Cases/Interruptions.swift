internal import MillraceDialog
internal import Synchronization

/// Where a dialogue can stand when something is done to it.
enum Position: String, CaseIterable {
  case connecting, listening, hearing, thinking, responding, answered, reconnecting

  /// What holds the dialogue there.
  func prepare(_ script: inout ServiceScript, forGood: Bool) {
    switch self {
    case .connecting: script.fault = ServiceFault(.hold, at: .connecting)
    case .thinking: script.fault = ServiceFault(.hold, at: .thinking)
    case .responding: script.fault = ServiceFault(.hold, at: .midway)
    case .reconnecting: script.refusal = .busy(forGood ? .max : 5)
    case .listening, .hearing, .answered: break
    }
  }

  /// Brings a dialogue there.
  func reach(_ rehearsal: Rehearsal) async throws {
    switch self {
    case .connecting: try await rehearsal.wait("connected") { $0.count("connected") == 1 }
    case .reconnecting: try await rehearsal.wait(for: .reconnecting)
    case .listening: try await rehearsal.wait(for: .listening)
    case .hearing:
      try await rehearsal.wait(for: .listening)
      rehearsal.speak(milliseconds: 2_000)
      try await rehearsal.wait("speechStarted") { $0.count("speechStarted") == 1 }
    case .thinking:
      try await rehearsal.wait(for: .listening)
      try rehearsal.ask()
      try await rehearsal.wait(for: .thinking)
    case .responding:
      try await rehearsal.wait(for: .listening)
      try rehearsal.ask()
      try await rehearsal.wait("the sound of a reply") {
        $0.count("replyStarted") == 1 && ($0.hasSound(of: 1) || rehearsal.traits.replies == nil)
      }
    case .answered:
      rehearsal.stage.playsOn.store(false, ordering: .releasing)
      try await rehearsal.wait(for: .listening)
      try rehearsal.ask()
      try await rehearsal.wait("the end of a reply") { $0.count("replyEnded") == 1 }
    }
  }

  func fit(_ made: ConformanceCase) -> ConformanceCase {
    var made = made
    made.needsVoice = self == .hearing
    made.needsPlayback = self == .answered
    return made
  }
}

/// The user breaks in.
extension ConformanceCase {
  static let interruptions: [ConformanceCase] =
    Position.allCases.map { position in
      position.fit(
        ConformanceCase(
          "interrupted \(position.rawValue)", "no sample of what was cut off comes, and the dialogue goes on",
          script: { position.prepare(&$0, forGood: false) },
          expect: { if position == .reconnecting { $0.errs = nil } },
          play: { rehearsal in
            try await position.reach(rehearsal)
            try await rehearsal.interrupt()
            if position == .connecting { return try await rehearsal.stop() }
            try rehearsal.letPlay()
            if position == .thinking || position == .responding || position == .answered {
              try await rehearsal.wait(for: .listening, times: 2)
            }
            try await rehearsal.waitListening()
            try await rehearsal.turn()
            try await rehearsal.drain()
          }))
    } + [bargeIn]

  private static let bargeIn: ConformanceCase = {
    var made = ConformanceCase(
      "voice over a reply", "the service's word for it voids the reply, and what is said is answered",
      script: { $0.fault = ServiceFault(.hold, at: .midway) },
      play: { rehearsal in
        try await Position.responding.reach(rehearsal)
        rehearsal.speak()
        try await rehearsal.wait("interrupted") { $0.count("interrupted") >= 1 }
        try await rehearsal.wait("an answer") { $0.count("replyStarted") == 2 && $0.count("replyEnded") >= 1 }
        try await rehearsal.waitListening()
        try await rehearsal.drain()
      })
    made.needsVoice = true
    return made
  }()
}

/// The graph ends, or what goes in.
extension ConformanceCase {
  static let ends: [ConformanceCase] = Position.allCases.flatMap { position in
    let expect: @Sendable (inout CaseExpectation) -> Void = { if position == .reconnecting { $0.errs = nil } }
    var over = ConformanceCase(
      "input ends \(position.rawValue)", "the end of the user's sound ends nothing else; drained, it ends",
      script: { position.prepare(&$0, forGood: true) }, expect: expect,
      play: { rehearsal in
        try await position.reach(rehearsal)
        rehearsal.endInput()
        if position == .listening || position == .answered {
          try rehearsal.letPlay()
          try await rehearsal.waitListening()
          try await rehearsal.turn()
        }
        try await rehearsal.drain()
      })
    over = position.fit(over)
    over.needsInput = true
    return [
      position.fit(
        ConformanceCase(
          "stopped \(position.rawValue)", "stops within 2 s, and keeps nothing",
          script: { position.prepare(&$0, forGood: true) }, expect: expect,
          play: { rehearsal in
            try await position.reach(rehearsal)
            try await rehearsal.stop()
          })),
      over,
    ]
  }
}
