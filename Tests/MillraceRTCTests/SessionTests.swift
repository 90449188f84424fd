import MillraceCore
import MillraceRTCWire
import Synchronization
import Testing

@testable import MillraceRTC

/// A session and what it has reported. On the loop's thread, but for `seen`.
final class SessionEnd: RTCSessionObserver, @unchecked Sendable {
  struct Seen: Sendable {
    var descriptions: [SessionDescription] = []
    var states: [RTCSessionState] = []
    var payloads: [[UInt8]] = []
    var sounds: [ReceivedSound] = []
    var events: [SCTPAssociation.Event] = []
    var ended: [UInt32] = []
  }

  let seen = Locked(Seen())
  private(set) var session: RTCSession?
  var onDescription: ((SessionDescription) -> Void)?
  var onCandidate: ((ICECandidate?) -> Void)?

  init(on loop: RTCLoop, _ identity: DTLSIdentity, _ change: (inout RTCSessionSettings) -> Void = { _ in }) {
    var settings = RTCSessionSettings()
    settings.ice.addresses = ["127.0.0.1"]
    change(&settings)
    session = RTCSession(on: loop, settings, identity, observer: self)
  }

  func sessionDescribed(_ description: SessionDescription) {
    seen.withLock { $0.descriptions.append(description) }
    onDescription?(description)
  }
  func sessionFound(_ candidate: ICECandidate?) { onCandidate?(candidate) }
  func sessionChanged(_ state: RTCSessionState) { seen.withLock { $0.states.append(state) } }
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    let bytes = payload.indices.map { payload[$0] }
    seen.withLock {
      $0.sounds.append(sound)
      $0.payloads.append(bytes)
    }
  }
  func sessionEnded(source: UInt32, reason: String?) { seen.withLock { $0.ended.append(source) } }
  func sessionReceived(_ event: SCTPAssociation.Event) { seen.withLock { $0.events.append(event) } }
}

@Suite("sessions of WebRTC", .timeLimit(.minutes(2)))
struct RTCSessionTests {
  func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(2)) }
  }

  /// Offers from one end to the other.
  func connect(_ a: SessionEnd, _ b: SessionEnd, on loop: RTCLoop) {
    loop.perform {
      a.onDescription = { b.session?.answer($0) }
      b.onDescription = { a.session?.accept($0) }
      a.onCandidate = { b.session?.add($0) }
      b.onCandidate = { a.session?.add($0) }
      a.session?.offer()
    }
  }

  @Test("an offer and an answer connect two sides, which hear each other")
  func hears() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let sections: (inout RTCSessionSettings) -> Void = { $0.sections = [.audio(), .data()] }
    let (a, b) = (SessionEnd(on: loop, identity, sections), SessionEnd(on: loop, identity, sections))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    loop.perform {
      for number in 0..<3 {
        for end in [a, b] {
          end.session?.send([UInt8](repeating: UInt8(number), count: 80).span, duration: 960, pause: 0)
        }
      }
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.payloads.count } == 3 } }
    let sounds = b.seen.withLock { $0.sounds }
    #expect(b.seen.withLock { $0.payloads.map { $0[0] } } == [0, 1, 2])
    #expect(zip(sounds, sounds.dropFirst()).allSatisfy { $1.timestamp - $0.timestamp == 960 })
    #expect(zip(sounds, sounds.dropFirst()).allSatisfy { $1.sequence - $0.sequence == 1 })
    #expect(sounds.map(\.marker) == [true, false, false])
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.events.contains(.connected) } } }

    // The end of one is an end for the other, which knows who has ended.
    loop.perform { a.session?.end() }
    try await until { b.seen.withLock { $0.ended.count == 1 && $0.states.last == .closed } }
  }

  @Test("an answer without a bundle is refused in words, and nothing connects")
  func refused() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    loop.perform {
      a.onDescription = { b.session?.answer($0) }
      b.onDescription = { description in
        var description = description
        description.groups = []
        a.session?.accept(description)
      }
      a.session?.offer()
    }
    try await until { a.seen.withLock { !$0.states.isEmpty } }
    #expect(a.seen.withLock { $0.states } == [.failed(.negotiation(.noBundle))])
  }

  @Test("who never answers is given up in time")
  func timeout() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let a = SessionEnd(on: loop, identity) { $0.connect = .milliseconds(50) }
    let b = SessionEnd(on: loop, identity)
    loop.perform {
      a.onDescription = { b.session?.answer($0) }
      b.onDescription = { description in
        loop.perform {
          b.session?.end()
          a.session?.accept(description)
        }
      }
      a.session?.offer()
    }
    try await until { a.seen.withLock { $0.states.last } == .failed(.timeout) }
  }
}
