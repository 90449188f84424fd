internal import MillraceDialog

/// The service goes wrong in the middle.
extension ConformanceCase {
  static let faults: [ConformanceCase] = losses + passing + goodByes

  private static func fault(
    _ kind: ServiceFault.Kind, _ place: ServiceFault.Place, _ text: String,
    _ expect: @escaping @Sendable (inout CaseExpectation) -> Void,
    _ play: @escaping @Sendable (Rehearsal) async throws -> Void
  ) -> ConformanceCase {
    ConformanceCase(
      "\(kind.rawValue) at \(place.rawValue)", text,
      script: { $0.fault = ServiceFault(kind, at: place) }, expect: expect, play: play)
  }

  /// Each costs a connection.
  private static let losses: [ConformanceCase] = {
    let isLost: @Sendable (inout CaseExpectation) -> Void = {
      $0.losses = 1
      $0.errs = true
    }
    let text = "tells of the loss, connects again, and the dialogue goes on"
    var cases: [ConformanceCase] = []
    for kind in [ServiceFault.Kind.drop, .stall] {
      for place in ServiceFault.Place.allCases {
        let isEarly = place == .connecting || place == .listening
        cases.append(fault(kind, place, text, isLost, isEarly ? brokenBeginning : brokenTurn))
      }
    }
    for kind in [ServiceFault.Kind.failure, .oversized] {
      for place in [ServiceFault.Place.thinking, .midway] {
        cases.append(fault(kind, place, text, isLost, brokenTurn))
      }
    }
    return cases
  }()

  /// The first connection is lost before anybody asks.
  private static let brokenBeginning: @Sendable (Rehearsal) async throws -> Void = { rehearsal in
    try await rehearsal.wait(for: .reconnecting)
    try await rehearsal.wait("listening again") { record in
      guard let lost = record.states.lastIndex(of: .reconnecting) else { return false }
      return record.states[lost...].contains(.listening)
    }
    try await rehearsal.turn()
    try await rehearsal.drain()
  }

  /// None of them costs the connection.
  private static let passing: [ConformanceCase] = {
    var cases: [ConformanceCase] = []
    for place in [ServiceFault.Place.listening, .thinking, .midway] {
      let play = place == .listening ? oneTurn : brokenTurn
      cases.append(
        fault(
          .malformed, place, "tells of it without its words, and the dialogue goes on", { $0.errs = true },
          place == .listening ? oneTurn : brokenTurn))
      cases.append(fault(.unknown, place, "comes out as unknown with all it holds", { _ in }, play))
    }
    for place in [ServiceFault.Place.thinking, .midway] {
      cases.append(
        fault(.error, place, "tells of it, and the dialogue goes on", { $0.errs = true }, brokenTurn))
    }
    cases.append(fault(.repeated, .thinking, "says nothing twice that is not twice", { _ in }, brokenTurn))
    cases.append(
      fault(.outOfOrder, .thinking, "the invariants hold in any order", { $0.errs = nil }, brokenTurn))
    return cases
  }()

  /// The service has had enough.
  private static let goodByes: [ConformanceCase] = {
    let isRefused: @Sendable (inout CaseExpectation) -> Void = {
      $0.fails = true
      $0.errs = true
      $0.mostVisits = 2
    }
    let kicked: @Sendable (Rehearsal) async throws -> Void = { rehearsal in
      try await rehearsal.wait(for: .listening)
      if rehearsal.script.fault?.place != .listening { try rehearsal.ask() }
      try await rehearsal.wait(for: .closed)
      try await rehearsal.drain()
    }
    let expired: @Sendable (Rehearsal) async throws -> Void = { rehearsal in
      // What was said right before a loss may be lost with it.
      if rehearsal.script.fault?.place != .listening {
        try await rehearsal.wait(for: .listening)
        try rehearsal.ask()
      }
      try await rehearsal.finish("the failure")
    }
    return [ServiceFault.Place.listening, .midway].flatMap { place in
      [
        fault(
          .kick, place, "tells that it is closed, and does not come again", { $0.mostVisits = 1 }, kicked),
        fault(
          .expire, place, "fails in words at the next connection, with one more visit", isRefused, expired),
      ]
    }
  }()
}
