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
    var pictures: [(picture: ReceivedPicture, bytes: [UInt8])] = []
    var tones: [ReceivedTone] = []
    var keyFramesWanted = 0
    /// The media of these.
    var mediaWanted: [Int] = []
    var allocations: [Int] = []
    var events: [DataChannelEvent] = []
    var ended: [UInt32] = []
  }

  let seen = Locked(Seen())
  private(set) var session: RTCSession?
  var onDescription: ((SessionDescription) -> Void)?
  var onCandidate: ((ICECandidate?) -> Void)?

  init(on loop: RTCLoop, _ identity: DTLSIdentity, _ change: (inout RTCSessionSettings) -> Void = { _ in }) {
    var settings = RTCSessionSettings()
    settings.ice.addresses = ["127.0.0.1"]
    // A process that is not run for seconds, as among hundreds of tests, must not lose its peer, or be given up.
    settings.ice.hasConsent = false
    settings.connect = .milliseconds(60_000)
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
  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    let bytes = bytes.indices.map { bytes[$0] }
    seen.withLock { $0.pictures.append((picture, bytes)) }
  }
  func sessionReceived(_ tone: ReceivedTone) { seen.withLock { $0.tones.append(tone) } }
  func sessionWantsKeyFrame(medium: Int) {
    seen.withLock {
      $0.keyFramesWanted += 1
      $0.mediaWanted.append(medium)
    }
  }
  func sessionAllocated(sound: Int, video: Int) { seen.withLock { $0.allocations.append(video) } }
  func sessionReceived(_ event: DataChannelEvent) { seen.withLock { $0.events.append(event) } }
}

/// Waits for what another thread does.
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

@Suite("sessions of WebRTC", .timeLimit(.minutes(30)))
struct RTCSessionTests {
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

    // A channel of one side is one of both.
    loop.perform {
      _ = a.session?.openChannel(
        DataChannelRequest(label: "notes", protocolName: "", delivery: SCTPAssociation.Delivery()))
    }
    try await until {
      [a, b].allSatisfy { end in
        end.seen.withLock { seen in
          seen.events.contains { event in
            if case .opened(_, "notes", _, _) = event { true } else { false }
          }
        }
      }
    }

    // The end of one is an end for the other, which knows who has ended.
    loop.perform { a.session?.end() }
    try await until { b.seen.withLock { $0.ended.count == 1 && $0.states.last == .closed } }
  }

  @Test("an answer without a bundle is refused with a message, and nothing connects")
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

  @Test(
    "pictures pass between two sessions, and a request for a key frame", arguments: [RTPCodec.h264, .vp8])
  func sees(_ codec: RTPCodec) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let sections: (inout RTCSessionSettings) -> Void = {
      $0.sections = [.audio(), .video(codecs: [codec])]
    }
    let (a, b) = (SessionEnd(on: loop, identity, sections), SessionEnd(on: loop, identity, sections))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let key = TestPicture.make(codec, isKey: true, count: 20_000, number: 1)
    let next = TestPicture.make(codec, isKey: false, count: 3_000, number: 2)
    loop.perform {
      let now = Clock(.realtime).now
      for end in [a, b] {
        end.session?.send(picture: key.span, isKey: true, captured: now)
        end.session?.send(picture: next.span, isKey: false, captured: now)
      }
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.pictures.count } == 2 } }
    for end in [a, b] {
      let pictures = end.seen.withLock { $0.pictures }
      #expect(pictures.map(\.bytes) == [key, next])
      #expect(pictures.map(\.picture.isKey) == [true, false])
      #expect(!end.seen.withLock { $0.allocations.isEmpty })
    }
    loop.perform { b.session?.requestKeyFrame() }
    try await until { a.seen.withLock { $0.keyFramesWanted } >= 1 }
    let statistics = Locked<RTCStatistics?>(nil)
    loop.perform {
      let now = a.session?.statistics
      statistics.withLock { $0 = now }
    }
    try await until { statistics.withLock { $0 } != nil }
    let counted = try #require(statistics.withLock { $0 })
    #expect(counted.video.sentPictures == 2 && counted.refusals.forged == 0)
  }

  @Test("keys of a telephone pass between two sessions")
  func tones() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let answers = Locked<[Bool?]>([])
    loop.perform {
      let given = [a.session?.send(tones: "4#"), a.session?.send(tones: "4Z")]
      answers.withLock { $0 = given }
    }
    try await until { b.seen.withLock { $0.tones.count } == 2 }
    #expect(answers.withLock { $0 } == [true, false])
    #expect(b.seen.withLock { $0.tones.map(\.digit) } == ["4", "#"])
  }

  @Test(
    "an ICE restart by either side has new credentials, and the sound continues", arguments: [true, false])
  func restart(_ byOfferer: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let (first, second) = byOfferer ? (a, b) : (b, a)
    let before = [a, b].map { $0.seen.withLock { $0.descriptions.count } }
    #expect(before == [1, 1])
    loop.perform {
      // Not answered within the call: the restart would be over, and the second one a restart of its own.
      first.onDescription = { offer in loop.perform { second.session?.answer(offer) } }
      second.onDescription = { first.session?.accept($0) }
      first.session?.offerRestart()
      // A second one while the first waits changes nothing.
      first.session?.offerRestart()
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.descriptions.count } == 2 } }
    for end in [a, b] {
      let descriptions = end.seen.withLock { $0.descriptions }
      #expect(descriptions[1].restartsICE(after: descriptions[0]))
      #expect(descriptions[1].origin.version > descriptions[0].origin.version)
      #expect(
        descriptions[1].transport(of: descriptions[1].media[0]).fingerprints
          == descriptions[0].transport(of: descriptions[0].media[0]).fingerprints)
    }
    // Sound is sent until some has come both ways over what the restart found.
    for round in 1...3 {
      let count = 20 * round
      try await until {
        loop.perform {
          for end in [a, b] { end.session?.send([1, 2, 3].span, duration: 960) }
        }
        return [a, b].allSatisfy { $0.seen.withLock { $0.payloads.count } >= count }
      }
    }
    // A process that is not run for seconds counts as disconnected until something comes, but it does not begin again.
    try await until {
      loop.perform {
        for end in [a, b] { end.session?.send([1, 2, 3].span, duration: 960) }
      }
      return [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected }
    }
    for end in [a, b] {
      let states = end.seen.withLock { $0.states }
      #expect(states.first == .connecting)
      #expect(states.dropFirst().allSatisfy { $0 == .connected || $0 == .disconnected }, "\(states)")
    }
  }

  @Test("an offer of the peer beside one of this side is ignored, and the session goes its way")
  func glare() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    loop.perform {
      a.onDescription = { offer in
        // This side has offered: it answers nothing.
        a.session?.answer(offer)
        b.session?.answer(offer)
      }
      b.onDescription = { a.session?.accept($0) }
      a.session?.offer()
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    #expect([a, b].allSatisfy { $0.seen.withLock { $0.descriptions.count } == 1 })
  }

  @Test("an answer to an ICE restart with another certificate ends the session")
  func foreignAnswer() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let other = try #require(CertificateFingerprint(digest: [UInt8](repeating: 9, count: 32)))
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    loop.perform {
      a.onDescription = { offer in loop.perform { b.session?.answer(offer) } }
      b.onDescription = { answer in
        var answer = answer
        for index in answer.media.indices { answer.media[index].transport.fingerprints = [other] }
        a.session?.accept(answer)
      }
      a.session?.offerRestart()
    }
    try await until { a.seen.withLock { $0.states.last } == .failed(.peer(.fingerprint)) }
  }
}
