import MillraceCrypto
import MillraceDialog
import MillraceNet
import MillraceService
import MillraceTuyaDouble
import Testing

@testable import MillraceTuya

/// Connections to the double, which shares no code with them.
@Suite("Tuya: a connection to the double", .timeLimit(.minutes(10))) struct LinkDoubleTests {
  private func target(_ double: TuyaDouble) throws -> TuyaTarget {
    var access = TuyaAccess()
    access.address = try WebAddress(double.address)
    access.client = double.client
    access.localKey = SecretKey(utf8: double.localKey)
    var target = TuyaTarget(access)
    if let roots = double.roots { target.trust = .file(roots) }
    target.proxy = .direct
    target.open = 600_000
    target.answer = 600_000
    return target
  }

  @Test(
    "twenty sessions and a hundred re-creations of one have data ids that the cloud takes, over one connection",
    arguments: [3, 5])
  func channels(_ count: Int) async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    defer { double.stop() }
    let sends: [TuyaDataKind] = [.audio, .text, .image, .file, .video]
    let terms = TuyaTerms(sends: Array(sends.prefix(count)), receives: [.audio, .text])
    let connection = TuyaConnection(try target(double), on: .shared)
    let token = TuyaSecret(double.agentToken)
    var sessions: [LinkSession] = []
    for index in 0..<TuyaTarget.mostSessions {
      let tokens = TuyaTokens(given: TuyaGrant(token: token, terms: terms))
      let session = LinkSession(over: connection, tokens: tokens, terms: terms)
      try await session.begin("s\(index)")
      sessions.append(session)
    }
    for number in 1...100 {
      sessions[0].call(.createSession(TuyaCreation(id: "again\(number)", isShared: false, userData: nil)))
    }
    try await eventually {
      double.seen.starts.count == TuyaTarget.mostSessions + 100 || !double.seen.violations.isEmpty
    } _: {
      "\(double.seen.starts.count) sessions"
    }
    #expect(double.seen.violations == [])
    for (index, session) in sessions.enumerated() {
      let (id, channel) = ("e\(index)", TuyaChannelName(.text))
      session.call(
        .startEvent(id, userData: nil), .text("what time is it", channel, userData: nil),
        .endPayloads(event: id, channel, userData: nil), .endEvent(id, userData: nil))
    }
    for (index, session) in sessions.enumerated() {
      try await session.expect { session.words.contains("event 2 e\(index)") }
      #expect(!session.audio.isEmpty)
      #expect(!session.words.contains { $0.hasPrefix("invalid") || $0.hasPrefix("failed") })
    }
    #expect(double.seen.violations == [])
    #expect(double.seen.connections == 1)
    for session in sessions { session.close() }
  }
}
