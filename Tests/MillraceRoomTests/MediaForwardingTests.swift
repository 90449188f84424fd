import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: media that are forwarded", .timeLimit(.minutes(20))) struct MediaForwardingTests {
  /// What a member with so many slots offers.
  private func sound(slots: Int) -> [MediaSection] {
    [.audio(.sendOnly)] + (0..<slots).map { _ in .audio(.receiveOnly) }
  }

  private func video(_ codec: RTPCodec, slots: Int = 1) -> [MediaSection] {
    [.audio(.sendOnly), .video(.sendOnly, codecs: [codec])]
      + (0..<slots).map { _ in .video(.receiveOnly, codecs: [codec]) }
  }

  /// Has clients say their number and a count until something has happened.
  private func talk(
    _ rig: MediaRig, _ clients: [(client: MediaClient, byte: UInt8)], count: UInt8 = 0,
    until condition: () -> Bool
  ) async throws {
    while !condition() {
      rig.loop.perform { for (client, byte) in clients { client.say([byte, count]) } }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  private func heard(_ client: MediaClient) -> [(mid: String, bytes: [UInt8])] {
    client.seen.withLock { $0.sounds }
  }

  @Test("each member hears the others in the slots that were reported, and never itself")
  func others() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    let names = ["ann", "bob", "cay"]
    for name in names {
      rig.join(name)
      rig.publish(name, .audio)
      rig.subscribe(name, .audio)
    }
    let clients = names.map { rig.connect($0, sound(slots: 2)) }
    try await rig.until { clients.allSatisfy { rig.isConnected($0) } }
    let speakers = [(clients[0], UInt8(0)), (clients[1], 1), (clients[2], 2)]
    try await talk(rig, speakers.map { (client: $0.0, byte: $0.1) }) {
      clients.allSatisfy { client in Set(heard(client).map { $0.bytes[0] }).count >= 2 }
    }
    for (own, client) in clients.enumerated() {
      let slots = rig.slots(names[own])
      #expect(Set(slots.values) == Set(names.filter { $0 != names[own] }.map { named($0) }))
      for sound in heard(client) {
        #expect(Int(sound.bytes[0]) != own)
        #expect(slots[sound.mid] == named(names[Int(sound.bytes[0])]))
      }
    }
  }

  @Test("a subscription that ends frees the slot, and nothing more comes in it")
  func unsubscribed() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob", "cay"] { rig.join(name) }
    rig.publish("bob", .audio)
    for name in ["ann", "cay"] { rig.subscribe(name, .audio) }
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    let cay = rig.connect("cay", sound(slots: 1))
    try await rig.until { rig.isConnected(ann, bob, cay) }
    try await talk(rig, [(bob, 1)]) { !heard(ann).isEmpty && !heard(cay).isEmpty }
    rig.subscribe("ann", .audio, false, to: "bob")
    try await rig.until { rig.slots("ann").isEmpty }
    #expect(rig.slots("cay") == ["1": named("bob")])
    try await talk(rig, [(bob, 1)], count: 9) { heard(cay).count { $0.bytes[1] == 9 } > 10 }
    #expect(!heard(ann).contains { $0.bytes[1] == 9 })
  }

  @Test("without a subscription nothing is received")
  func nothing() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob", "cay"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("cay", .audio, to: "bob")
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    let cay = rig.connect("cay", sound(slots: 1))
    try await rig.until { rig.isConnected(ann, bob, cay) }
    try await talk(rig, [(bob, 1)]) { heard(cay).count > 10 }
    #expect(heard(ann).isEmpty && rig.slots("ann").isEmpty)
  }

  @Test(
    "what a viewer sends is dropped, and what a host does not publish", arguments: [RoomRole.viewer, .host])
  func dropped(_ role: RoomRole) async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    rig.join("ann", role: role)
    rig.join("bob")
    if role == .viewer { rig.publish("ann", .audio) }
    rig.subscribe("bob", .audio)
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) }
    try await talk(rig, [(ann, 0)]) { rig.counts.unpublished > 10 }
    #expect(heard(bob).isEmpty && rig.slots("bob").isEmpty && rig.counts.sounds == 0)
    // Published by a host, it passes.
    if role == .viewer { rig.act(.role(named("ann"), .host)) } else { rig.publish("ann", .audio) }
    try await talk(rig, [(ann, 0)]) { !heard(bob).isEmpty }
  }

  @Test("a member that leaves frees its slots and ends its session; the room's end ends all")
  func left() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] {
      rig.join(name)
      rig.publish(name, .audio)
      rig.subscribe(name, .audio)
    }
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) && rig.slots("ann") == ["1": named("bob")] }
    #expect(rig.counts.sessions == 2)
    rig.act(.left(named("bob"), room: rig.room))
    try await rig.until { rig.slots("ann").isEmpty && rig.counts.sessions == 1 }
    try await rig.until { bob.seen.withLock { $0.states.last } == .closed }
    rig.act(.roomEnded(rig.room))
    try await rig.until { rig.counts.sessions == 0 }
    try await rig.until { ann.seen.withLock { $0.states.last } == .closed }
  }

  @Test("an offer that cannot be used is refused with the reason, and the next one can be used")
  func refused() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    rig.join("ann")
    let request = rig.offer("ann", "hello")
    try await rig.until { rig.errors()[request] != nil }
    #expect(rig.errors()[request] == .badOffer)
    rig.connect("ann", [.data()])
    try await rig.until { rig.errors().count == 2 }
    // Without its bundle.
    rig.connect("ann", sound(slots: 1)) { $0.replacing("a=group:", with: "a=other:") }
    try await rig.until { rig.errors().count == 3 }
    #expect(Set(rig.errors().values) == [.badOffer])
    rig.connect("ann", [.audio(.sendOnly, codecs: [.pcmu])])
    try await rig.until { rig.errors().count == 4 }
    #expect(rig.errors()[4] == .noCommonCodec)
    try await rig.until { rig.counts.sessions == 0 }
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    #expect(rig.counts.sessions == 1)
  }

  @Test("an offer that restarts ICE keeps the session and its sound")
  func restarted() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) }
    try await talk(rig, [(bob, 1)]) { !heard(ann).isEmpty }
    for client in [ann, bob] { rig.loop.perform { client.session?.offerRestart() } }
    try await rig.until { rig.answers("ann").count == 2 && rig.answers("bob").count == 2 }
    try await talk(rig, [(bob, 1)], count: 7) { heard(ann).contains { $0.bytes[1] == 7 } }
    #expect(rig.counts.sessions == 2 && rig.errors().isEmpty)
    #expect(rig.slots("ann") == ["1": named("bob")])
  }

  /// Offers for a session that cannot be answered, and what they are refused with.
  private static func badOffers(after text: String) throws -> [(sdp: String, error: RoomErrorName)] {
    let offer = try SessionDescription(parsing: text)
    let other = try #require(CertificateFingerprint(digest: [UInt8](repeating: 9, count: 32)))
    func changed(_ change: (inout SessionDescription) -> Void) -> String {
      var offer = offer
      change(&offer)
      return offer.text
    }
    return [
      (text.replacing("a=group:", with: "a=other:"), .badOffer),
      (text.replacing("opus/", with: "other/"), .noCommonCodec),
      (changed { $0.media.removeLast() }, .badOffer),
      (changed { $0.media.swapAt(0, 1) }, .badOffer),
      (
        changed { offer in
          for index in offer.media.indices { offer.media[index].transport.fingerprints = [other] }
        }, .badOffer
      ),
    ]
  }

  @Test("an offer of the session that cannot be used is refused, and the session goes on with its sound")
  func refusedAgain() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) }
    try await talk(rig, [(bob, 1)]) { !heard(ann).isEmpty }
    let first = try #require(rig.offers.withLock { $0["ann"]?.first })
    for (sdp, error) in try Self.badOffers(after: first) {
      let request = rig.offer("ann", sdp)
      try await rig.until { rig.errors()[request] != nil }
      #expect(rig.errors()[request] == error)
      // The hub's patience ended at the same time.
      rig.act(.withdrawn(named("ann"), request: request))
    }
    try await talk(rig, [(bob, 1)], count: 7) { heard(ann).contains { $0.bytes[1] == 7 } }
    #expect(rig.counts.sessions == 2 && rig.slots("ann") == ["1": named("bob")])
    _ = rig.offer("ann", first)
    try await rig.until { rig.answers("ann").count == 2 }
  }

  /// The description with one more slot for sound.
  private static func withSlot(_ text: String) -> String {
    guard var description = try? SessionDescription(parsing: text), var medium = description.media.last,
      !description.groups.isEmpty
    else { return text }
    let mid = String(description.media.count)
    medium.mid = mid
    medium.candidates = []
    description.media.append(medium)
    description.groups[0].mids.append(mid)
    return description.text
  }

  @Test("a later offer of a session may have more slots, and who waits gets them")
  func added() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob", "cay"] { rig.join(name) }
    for name in ["bob", "cay"] { rig.publish(name, .audio) }
    rig.subscribe("ann", .audio)
    let (offers, answers) = (Locked<Int>(0), Locked<Int>(0))
    @Sendable func isFirst(_ counter: Locked<Int>) -> Bool {
      counter.withLock { (count: inout Int) -> Bool in
        count += 1
        return count == 1
      }
    }
    // Its own side knows nothing of the slot, and would give the session up for the second answer.
    let ann = rig.connect(
      "ann", sound(slots: 1), change: { isFirst(offers) ? $0 : Self.withSlot($0) },
      answered: { isFirst(answers) ? $0 : nil })
    try await rig.until { rig.isConnected(ann) && rig.slots("ann") == ["1": named("bob")] }
    rig.loop.perform { ann.session?.offerRestart() }
    try await rig.until { rig.wasAssigned("ann", RoomSlot("2", .audio, peer: named("cay"))) }
    #expect(!rig.wasAssigned("ann", RoomSlot("2", .audio, peer: named("bob"))))
  }

  @Test("an offer of another session replaces the one before it")
  func replaced() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let (first, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 1)))
    try await rig.until { rig.isConnected(first, bob) }
    let second = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(second) && first.seen.withLock { $0.states.last } == .closed }
    #expect(rig.counts.sessions == 2)
    try await talk(rig, [(bob, 1)]) { !heard(second).isEmpty }
  }

  @Test("who speaks is reported with the level, and the silence after it")
  func levels() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    rig.join("bob")
    rig.publish("bob", .audio)
    let bob = rig.connect("bob", sound(slots: 0))
    try await rig.until { rig.isConnected(bob) }
    try await talk(rig, [(bob, 1)]) { rig.levels.contains([RoomLevel(named("bob"), -20)]) }
    // All that it has said has gone out, and then nothing is heard any more.
    await withCheckedContinuation { done in rig.loop.perform { done.resume() } }
    try await rig.until { rig.levels.last?.isEmpty ?? false }
    let count = rig.levels.count
    // Noise is nobody's voice.
    for _ in 0..<50 {
      rig.loop.perform { bob.say([1, 1], attenuation: 70) }
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(rig.levels.dropFirst(count).allSatisfy { $0.isEmpty })
  }

  @Test(
    "pictures begin with a key frame that is asked for at their sender, as is what a receiver wants",
    arguments: [RTPCodec.h264, .vp8])
  func keyFrames(_ codec: RTPCodec) async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    let (ann, bob) = (rig.connect("ann", video(codec)), rig.connect("bob", video(codec)))
    try await rig.until { rig.isConnected(ann, bob) }
    func make(_ isKey: Bool, _ number: Int) -> [UInt8] {
      codec.name == "VP8"
        ? MediaPicture.vp8(isKey: isKey, number: number) : MediaPicture.h264(isKey: isKey, number: number)
    }
    var number = 0
    func show(isKey: Bool) {
      number += 1
      let picture = make(isKey, number)
      rig.loop.perform { ann.show(picture, isKey: isKey) }
    }
    // Before anybody receives it.
    show(isKey: true)
    try await rig.until { rig.counts.unpublished == 1 }
    rig.publish("ann", .video)
    rig.subscribe("bob", .video)
    try await rig.until { rig.slots("bob", .video) == ["2": named("ann")] }
    while rig.keyFrames(of: "ann") == 0 || ann.seen.withLock({ $0.keyFramesWanted }) == 0 {
      show(isKey: false)
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(bob.seen.withLock { $0.pictures }.isEmpty)
    let key = make(true, number + 1)
    show(isKey: true)
    try await rig.until { bob.seen.withLock { $0.pictures.first } == key }

    let wanted = ann.seen.withLock { $0.keyFramesWanted }
    while ann.seen.withLock({ $0.keyFramesWanted }) == wanted {
      rig.loop.perform { bob.session?.requestKeyFrame() }
      show(isKey: false)
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test("a receiver with another codec than the sender gets no pictures, and others do")
  func otherCodec() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob", "cay"] {
      rig.join(name)
      rig.subscribe(name, .video)
    }
    rig.publish("ann", .video)
    let (ann, bob) = (rig.connect("ann", video(.vp8)), rig.connect("bob", video(.h264)))
    let cay = rig.connect("cay", video(.vp8))
    try await rig.until { rig.isConnected(ann, bob, cay) }
    var number = 0
    while cay.seen.withLock({ $0.pictures.count }) < 5 {
      number += 1
      let picture = MediaPicture.vp8(isKey: true, number: number)
      rig.loop.perform { ann.show(picture, isKey: true) }
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(rig.counts.otherCodec >= 5)
    #expect(bob.seen.withLock { $0.pictures }.isEmpty)
  }

  @Test("with the end all sessions are over, and nothing is reported any more")
  func ended() async throws {
    let rig = try MediaRig()
    defer { rig.loop.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    await withCheckedContinuation { done in rig.media.end { done.resume() } }
    #expect(rig.counts.sessions == 0)
    let count = rig.reports.withLock { $0.count }
    _ = rig.offer("ann", "hello")
    // A second end is one too.
    await withCheckedContinuation { done in rig.media.end { done.resume() } }
    #expect(rig.reports.withLock { $0.count } == count)
  }
}
