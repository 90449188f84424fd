import MillraceCore
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRTC
@testable import MillraceRoom

@Suite("Room: later offers of a session to media", .timeLimit(.minutes(20))) struct MediaOfferTests {
  private func sound(slots: Int) -> [MediaSection] {
    [.audio(.sendOnly)] + (0..<slots).map { _ in .audio(.receiveOnly) }
  }

  /// An offer with one medium in the place of some, which are stopped.
  private static func replacing(_ places: Range<Int>, _ text: String, with mids: [String]) throws -> String {
    var offer = try SessionDescription(parsing: text)
    for place in places {
      var medium = offer.media[place]
      medium.candidates = []
      (medium.sources, medium.sourceGroups) = ([], [])
      offer.groups[0].mids.removeAll { $0 == medium.mid }
      offer.media[place].port = 0
      medium.mid = mids[place - places.lowerBound]
      offer.media.append(medium)
      offer.groups[0].mids.append(mids[place - places.lowerBound])
    }
    return offer.text
  }

  @Test("a sound in the place of one that was stopped is the member's sound from then on")
  func replacedSound() async throws {
    let media = try DirectMedia()
    let rig = try MediaRig(media)
    defer { rig.stop() }
    rig.join("ann")
    rig.publish("ann", .audio)
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    try await media.connected("ann")
    let first = try #require(rig.offers.withLock { $0["ann"]?.first })
    _ = rig.offer("ann", try Self.replacing(0..<1, first, with: ["n"]))
    try await rig.until { rig.answers("ann").count == 2 }
    let answer = try SessionDescription(parsing: try #require(rig.answers("ann").last))
    #expect(answer.media.map(\.isRejected) == [true, false, false])
    let time = Clock(.realtime)
    let refused = await media.with("ann") { member in
      (0..<3).filter { medium in
        let before = media.counters.counts.unpublished
        let payload: [UInt8] = [0x78, 1]
        let sound = ReceivedSound(
          ssrc: 5, codec: .opus, sequence: 1, timestamp: 1, arrival: time.now, capture: 0, payloadType: 111,
          marker: false, restarts: false, level: nil, medium: medium)
        member?.sessionReceived(sound, payload.span)
        return media.counters.counts.unpublished > before
      }
    }
    #expect(refused == [0, 1])
  }

  @Test("a session that puts videos in the place of others again and again has a limited number of them")
  func replacedVideos() async throws {
    let media = try DirectMedia()
    let rig = try MediaRig(media)
    defer { rig.stop() }
    rig.join("ann")
    let sections: [MediaSection] = (0..<2).map { _ in .video(.sendOnly, codecs: [.vp8]) }
    let ann = rig.connect("ann", [.audio(.sendOnly)] + sections)
    try await rig.until { rig.isConnected(ann) }
    try await media.connected("ann")
    var text = try #require(rig.offers.withLock { $0["ann"]?.first })
    for round in 0..<6 {
      let start = 1 + 2 * round
      text = try Self.replacing(start..<start + 2, text, with: ["x\(round)", "y\(round)"])
      _ = rig.offer("ann", text)
      try await rig.until { rig.answers("ann").count == 2 + round }
    }
    let videos = await media.with("ann") { member in
      member?.session?.media.count(where: { $0.kind == .video }) ?? 0
    }
    #expect(videos == OfferedMedia.mostVideos + OfferedMedia.mostReplaced)
  }

  @Test("an offer of nothing leaves the session as it is")
  func nothing() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    let request = rig.offer("ann", "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n")
    try await rig.until { rig.errors()[request] == .badOffer }
    #expect(rig.counts.sessions == 1)
    #expect(ann.seen.withLock { $0.states.last } == .connected)
  }

  @Test("a session ends whose answer nobody waits for, and one that was offered again does not")
  func withdrawn() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    rig.join("ann")
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    let first = try #require(rig.offers.withLock { $0["ann"]?.first })
    // The same session is offered once more.
    let second = rig.offer("ann", first)
    try await rig.until { rig.answers("ann").count == 2 }
    rig.act(.withdrawn(named("ann"), request: second - 1))
    rig.act(.withdrawn(named("bob"), request: second))
    try await rig.carriedOut("ann")
    #expect(rig.counts.sessions == 1)
    rig.act(.withdrawn(named("ann"), request: second))
    try await rig.until { rig.counts.sessions == 0 }
    let again = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(again) }
  }
}
