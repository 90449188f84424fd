import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: media that are mixed", .timeLimit(.minutes(20))) struct MixMediaTests {
  private struct Talker {
    let client: MediaClient
    let voice: MixVoice
  }

  private func begin() throws -> (rig: MediaRig, media: RoomMixing) {
    var settings = RoomMixSettings()
    MediaRig.local(&settings.session)
    let media = try RoomMixing(settings)
    return (try MediaRig(media), media)
  }

  /// Has clients talk, a packet every 20 ms, until something has happened, which is looked at twice a second.
  private func talk(_ rig: MediaRig, _ talkers: [Talker], until condition: () -> Bool) async throws {
    let clock = ContinuousClock()
    var due = clock.now
    for number in 0... {
      if number % 25 == 0, condition() { return }
      let packets = talkers.map { ($0.client, $0.voice.packet()) }
      rig.loop.perform { for (client, packet) in packets { client.send(packet) } }
      due += .milliseconds(20)
      // A process that did not run for long does not make up for it.
      if clock.now - due > .milliseconds(200) { due = clock.now }
      try await Task.sleep(until: due, clock: clock)
    }
  }

  private func payloads(_ client: MediaClient) -> [[UInt8]] { client.seen.withLock { $0.payloads } }

  /// The level of a tone in the latest second of what a client has received; nil: it has not received as much.
  private func level(_ tone: Double, _ client: MediaClient) throws -> Double? {
    let latest = payloads(client).suffix(60)
    guard latest.count == 60 else { return nil }
    let ear = try MixEar()
    for payload in latest { ear.take(payload) }
    return ear.level(tone, frames: 50)
  }

  private func hears(_ client: MediaClient, _ tone: Double) -> Bool {
    let found = try? level(tone, client)
    return (found ?? -200) >= -22
  }

  /// The highest level of a tone in any second of what a client has received.
  private func highest(_ tone: Double, _ client: MediaClient) throws -> Double {
    let ear = try MixEar()
    for payload in payloads(client) { ear.take(payload) }
    let frames = ear.packets
    return stride(from: 0, to: max(1, frames - 50), by: 25).map { before in
      ear.level(tone, frames: min(50, frames), before: before)
    }.max() ?? -200
  }

  @Test("each of three members hears the mix of the others and never itself, and a viewer hears all of them")
  func others() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    let names = ["ann", "bob", "cay"]
    for name in names {
      rig.join(name)
      rig.publish(name, .audio)
    }
    rig.join("dan", role: .viewer)
    let clients = names.map { rig.connect($0, [.audio()]) }
    let dan = rig.connect("dan", [.audio(.receiveOnly)])
    try await rig.until { clients.allSatisfy { rig.isConnected($0) } && rig.isConnected(dan) }
    let talkers = try zip(clients, MixRig.tones).map { Talker(client: $0, voice: try MixVoice($1)) }
    try await talk(rig, talkers) {
      talkers.allSatisfy { talker in
        hears(dan, talker.voice.frequency)
          && talkers.allSatisfy { $0.client === talker.client || hears(talker.client, $0.voice.frequency) }
      }
    }
    for talker in talkers { #expect(try highest(talker.voice.frequency, talker.client) <= -25) }
    #expect(media.counts.sessions == 4 && media.counts.seats == 4 && media.counts.sounds > 0)
    // Nobody has slots.
    for name in names + ["dan"] { #expect(rig.slots(name).isEmpty) }
  }

  @Test("the answer has one sound, and pictures, data and a second sound are refused")
  func refusedMedia() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", [.audio(), .video(), .data(), .audio(.sendOnly)])
    try await rig.until { rig.isConnected(ann) }
    let answer = try SessionDescription(parsing: try #require(rig.answers("ann").first))
    #expect(answer.media.map(\.isRejected) == [false, true, true, true])
    #expect(answer.direction(of: answer.media[0]) == .sendReceive)
    #expect(media.counts.sessions == 1)
  }

  @Test(
    "the answer turns the direction of the offer round",
    arguments: [MediaDirection.sendReceive, .sendOnly, .receiveOnly])
  func directions(_ direction: MediaDirection) async throws {
    let (rig, _) = try begin()
    defer { rig.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", [.audio(direction)])
    try await rig.until { rig.isConnected(ann) }
    let answer = try SessionDescription(parsing: try #require(rig.answers("ann").first))
    #expect(answer.direction(of: answer.media[0]) == direction.reversed)
  }

  @Test("an offer that cannot be used is refused with the reason, and the next one can be used")
  func refused() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    rig.join("ann")
    _ = rig.offer("ann", "hello")
    try await rig.until { rig.errors().count == 1 }
    rig.connect("ann", [.video(), .data()])
    try await rig.until { rig.errors().count == 2 }
    rig.connect("ann", [.audio(.inactive)])
    try await rig.until { rig.errors().count == 3 }
    #expect(Set(rig.errors().values) == [.badOffer])
    rig.connect("ann", [.audio(codecs: [.pcmu])])
    try await rig.until { rig.errors().count == 4 }
    #expect(rig.errors()[4] == .noCommonCodec)
    try await rig.until { media.counts.sessions == 0 }
    let ann = rig.connect("ann", [.audio()])
    try await rig.until { rig.isConnected(ann) }
  }

  @Test("what a viewer sends is not heard, nor what a host does not publish; levels say who speaks")
  func dropped() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    rig.join("ann", role: .viewer)
    rig.join("bob")
    rig.publish("ann", .audio)
    let (ann, bob) = (rig.connect("ann", [.audio()]), rig.connect("bob", [.audio()]))
    try await rig.until { rig.isConnected(ann, bob) }
    let talkers = [Talker(client: ann, voice: try MixVoice(400))]
    try await talk(rig, talkers) { media.counts.unpublished > 50 }
    #expect(payloads(bob).isEmpty && rig.levels.isEmpty)
    rig.act(.role(named("ann"), .host))
    try await talk(rig, talkers) { hears(bob, 400) }
    try await talk(rig, talkers) {
      rig.levels.contains {
        $0.count == 1 && $0[0].peer == named("ann") && (-20 ... -10).contains($0[0].level)
      }
    }
    rig.publish("ann", .audio, false)
    var count = -1
    repeat {
      count = payloads(bob).count
      let mark = media.counts.unpublished
      try await talk(rig, talkers) { media.counts.unpublished >= mark + 50 }
    } while payloads(bob).count != count
    try await talk(rig, talkers) { rig.levels.last?.isEmpty ?? false }
    #expect(payloads(ann).isEmpty)
  }

  @Test("another session of a member takes the place of the one before, and both hear on")
  func replaced() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    for name in ["ann", "bob"] {
      rig.join(name)
      rig.publish(name, .audio)
    }
    let (first, bob) = (rig.connect("ann", [.audio()]), rig.connect("bob", [.audio()]))
    try await rig.until { rig.isConnected(first, bob) }
    let (low, high) = (try MixVoice(400), try MixVoice(1_100))
    try await talk(rig, [Talker(client: first, voice: low), Talker(client: bob, voice: high)]) {
      hears(bob, 400) && hears(first, 1_100)
    }
    let second = rig.connect("ann", [.audio()])
    try await rig.until { rig.isConnected(second) && first.seen.withLock { $0.states.last } == .closed }
    let other = try MixVoice(2_300)
    try await talk(rig, [Talker(client: second, voice: other), Talker(client: bob, voice: high)]) {
      hears(bob, 2_300) && hears(second, 1_100)
    }
    #expect(try highest(2_300, second) <= -25)
    #expect(media.counts.sessions == 2 && media.counts.seats == 2)
    // ICE restarts within the session.
    rig.loop.perform { second.session?.offerRestart() }
    try await rig.until { rig.answers("ann").count == 3 }
    #expect(media.counts.sessions == 2 && rig.errors().isEmpty)
  }

  @Test("members that leave take their sessions and seats along, as do a thousand that come and go")
  func left() async throws {
    let (rig, media) = try begin()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    let (ann, bob) = (rig.connect("ann", [.audio()]), rig.connect("bob", [.audio()]))
    try await rig.until { rig.isConnected(ann, bob) }
    // From then on the hub is connected as well, and what it says at the end is understood.
    try await talk(rig, [Talker(client: bob, voice: try MixVoice(400))]) { media.counts.unpublished > 0 }
    rig.act(.left(named("bob"), room: rig.room))
    try await rig.until { media.counts.sessions == 1 && media.counts.seats == 1 }
    try await rig.until { bob.seen.withLock { $0.states.last } == .closed }
    for number in 0..<1_000 {
      rig.join("m\(number)")
      rig.publish("m\(number)", .audio)
      rig.act(.left(named("m\(number)"), room: rig.room))
    }
    // Actions are carried out in their order.
    let request = rig.offer("ann", "hello")
    try await rig.until { rig.errors()[request] != nil }
    #expect(media.counts.sessions == 1 && media.counts.seats == 1)
    rig.act(.roomEnded(rig.room))
    try await rig.until { media.counts.sessions == 0 && media.counts.seats == 0 }
    try await rig.until { ann.seen.withLock { $0.states.last } == .closed }
  }

  @Test("with the end all sessions are over, and nothing is reported any more")
  func ended() async throws {
    let (rig, media) = try begin()
    defer { rig.loop.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", [.audio()])
    try await rig.until { rig.isConnected(ann) }
    await withCheckedContinuation { done in media.end { done.resume() } }
    #expect(media.counts.sessions == 0 && media.counts.seats == 0)
    let count = rig.reports.withLock { $0.count }
    _ = rig.offer("ann", "hello")
    await withCheckedContinuation { done in media.end { done.resume() } }
    #expect(rig.reports.withLock { $0.count } == count)
  }

  @Test("a hub that mixes has these media")
  func hub() async throws {
    let rig = try await ServerRig.begin { settings in
      settings.hub.media = .mix
      MediaRig.local(&settings.mixing.session)
    }
    let (ann, joined) = try await rig.member("ann")
    #expect(joined.media == .mix)
    let empty = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
    let request = ann.request(.sdp(RoomDescription(.offer, empty)))
    guard case .failure(let error) = try await ann.answer(request).result else {
      Issue.record("it was answered")
      return
    }
    #expect(error.name == .badOffer)
    #expect(error.text == "the offer has no sound that is sent or received; offer one")
    await rig.server.stop()
  }
}
