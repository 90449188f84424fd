import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// How long a peer may be silent. The test gives a session its times, on its loop's thread, where nothing of the peer is read meanwhile:
/// no real time passes.
@Suite("sessions of WebRTC with a silent peer", .timeLimit(.minutes(30)))
struct SessionSilenceTests {
  /// Sends sound until a packet of it has come.
  private func hear(_ a: SessionEnd, _ b: SessionEnd, on loop: RTCLoop) async throws {
    let count = a.seen.withLock { $0.payloads.count }
    try await until {
      loop.perform { b.session?.send([1, 2, 3].span, duration: 960, pause: 0) }
      return a.seen.withLock { $0.payloads.count } > count
    }
  }

  /// Has time pass for a session. Returns how long it takes until its peer counts as gone; nil: more than 30 s.
  private static func silence(of session: RTCSession, from now: inout Nanoseconds) -> Nanoseconds? {
    // A look that notes what has come until now: they are less than 5 s apart.
    now += .milliseconds(5_000)
    _ = session.run(at: now)
    let start = now
    for _ in 0..<300 where session.state == .connected {
      now += .milliseconds(100)
      _ = session.run(at: now)
    }
    return session.state == .disconnected ? now - start : nil
  }

  @Test(
    "a peer counts as gone after 3 s where it is asked for a sign of life, and after 16 s where it is not",
    arguments: [(true, 3_000...4_000), (false, 16_000...17_000)] as [(Bool, ClosedRange<Int64>)])
  func gone(isAsked: Bool, milliseconds: ClosedRange<Int64>) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let a = SessionEnd(on: loop, identity) {
      $0.ice.hasConsent = isAsked
      $0.recovery = .milliseconds(600_000)
    }
    let b = SessionEnd(on: loop, identity)
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }

    let time = Locked(Clock(.realtime).now)
    let found = Locked<Nanoseconds?>(nil)
    // There is no verdict before the system has noted packets of the peer.
    while found.withLock({ $0 }) == nil {
      try await hear(a, b, on: loop)
      let isDone = Locked(false)
      loop.perform {
        if let session = a.session, session.state == .connected {
          var now = time.withLock { $0 }
          let silence = Self.silence(of: session, from: &now)
          time.withLock { $0 = now }
          found.withLock { $0 = silence }
        }
        isDone.withLock { $0 = true }
      }
      try await until { isDone.withLock { $0 } }
    }
    let silence = try #require(found.withLock { $0 }) / 1_000_000
    #expect(milliseconds.contains(silence), "\(silence) ms")

    // What comes of the peer connects again.
    try await hear(a, b, on: loop)
    try await until { a.seen.withLock { $0.states.last } == .connected }
  }
}
