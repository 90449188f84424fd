internal import MillraceDialog

/// Faults of the service during a dialogue.
extension ConformanceCase {
  static let faults: [ConformanceCase] = losses + passing + sessionEnds

  private static func fault(
    _ kind: ServiceFault.Kind, _ place: ServiceFault.Place, _ text: String,
    _ expect: @escaping @Sendable (inout CaseExpectation) -> Void,
    _ play: @escaping @Sendable (CaseRun) async throws -> Void
  ) -> ConformanceCase {
    ConformanceCase(
      "\(kind.rawValue) at \(place.rawValue)", text,
      script: { $0.fault = ServiceFault(kind, at: place) }, expect: expect, play: play)
  }

  /// Faults that cost the connection.
  private static let losses: [ConformanceCase] = {
    let isLost: @Sendable (inout CaseExpectation) -> Void = {
      $0.losses = 1
      $0.expectsErrors = true
    }
    let text = "reports the loss, reconnects, and the dialogue continues"
    var cases: [ConformanceCase] = []
    for kind in [ServiceFault.Kind.drop, .stall] {
      for place in ServiceFault.Place.allCases {
        let isEarly = place == .connecting || place == .listening
        cases.append(fault(kind, place, text, isLost, isEarly ? brokenBeginning : brokenTurn))
      }
    }
    for kind in [ServiceFault.Kind.fail, .oversized] {
      for place in [ServiceFault.Place.thinking, .midway] {
        cases.append(fault(kind, place, text, isLost, brokenTurn))
      }
    }
    return cases
  }()

  /// The first connection is lost before the first turn.
  private static let brokenBeginning: @Sendable (CaseRun) async throws -> Void = { run in
    try await run.wait(for: .reconnecting)
    try await run.wait("listening again") { record in
      guard let lost = record.states.lastIndex(of: .reconnecting) else { return false }
      return record.states[lost...].contains(.listening)
    }
    try await run.turn()
    try await run.drain()
  }

  /// Faults that do not cost the connection.
  private static let passing: [ConformanceCase] = {
    var cases: [ConformanceCase] = []
    for place in [ServiceFault.Place.listening, .thinking, .midway] {
      let play = place == .listening ? oneTurn : brokenTurn
      cases.append(
        fault(
          .malformed, place, "reports it without its content, and the dialogue continues",
          { $0.expectsErrors = true },
          place == .listening ? oneTurn : brokenTurn))
      cases.append(fault(.unknown, place, "is posted as unknown, with its content", { _ in }, play))
    }
    for place in [ServiceFault.Place.thinking, .midway] {
      cases.append(
        fault(
          .error, place, "reports it, and the dialogue continues", { $0.expectsErrors = true }, brokenTurn))
    }
    cases.append(
      fault(.repeated, .thinking, "repeated messages cause no repeated events", { _ in }, brokenTurn))
    cases.append(
      fault(
        .outOfOrder, .thinking, "the invariants hold in any order", { $0.expectsErrors = nil }, brokenTurn))
    return cases
  }()

  /// The service ends the dialogue.
  private static let sessionEnds: [ConformanceCase] = {
    let isRefused: @Sendable (inout CaseExpectation) -> Void = {
      $0.fails = true
      $0.expectsErrors = true
      $0.maxConnections = 2
    }
    let kicked: @Sendable (CaseRun) async throws -> Void = { run in
      try await run.wait(for: .listening)
      if run.script.fault?.place != .listening { try run.ask() }
      try await run.wait(for: .closed)
      try await run.drain()
    }
    let expired: @Sendable (CaseRun) async throws -> Void = { run in
      // What was said right before a loss may be lost, too.
      if run.script.fault?.place != .listening {
        try await run.wait(for: .listening)
        try run.ask()
      }
      try await run.finish("the failure")
    }
    return [ServiceFault.Place.listening, .midway].flatMap { place in
      [
        fault(
          .kick, place, "reports that the session is closed, and does not reconnect",
          { $0.maxConnections = 1 }, kicked),
        fault(
          .expire, place, "fails with a message at the next connection, after one more attempt", isRefused,
          expired),
      ]
    }
  }()
}
