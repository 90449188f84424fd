import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: several videos, loops and ways to connect of media", .timeLimit(.minutes(20)))
struct MediaSeveralTests {
  private func heard(_ client: MediaClient) -> [(mid: String, bytes: [UInt8])] {
    client.seen.withLock { $0.sounds }
  }

  /// Has clients say a byte each until something has happened.
  private func talk(
    _ rig: MediaRig, _ clients: [(client: MediaClient, byte: UInt8)], until condition: () -> Bool
  ) async throws {
    while !condition() {
      rig.loop.perform { for (client, byte) in clients { client.say([byte]) } }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test("of a member's camera and screen the one is received that it says it publishes")
  func screen() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("ann", .video, source: .camera)
    rig.subscribe("bob", .video)
    let videos = (0..<2).map { _ in MediaSection.video(.sendOnly, codecs: [.vp8]) }
    let ann = rig.connect("ann", [.audio(.sendOnly)] + videos)
    let bob = rig.connect("bob", [.audio(.sendOnly), .video(.receiveOnly, codecs: [.vp8])])
    try await rig.until { rig.isConnected(ann, bob) && rig.slots("bob", .video) == ["1": named("ann")] }
    let camera = (0..<100).map { MediaPicture.vp8(isKey: true, number: $0) }
    let screen = (100..<200).map { MediaPicture.vp8(isKey: true, number: $0) }
    var number = 0
    func show(until condition: ([[UInt8]]) -> Bool) async throws {
      while !condition(bob.seen.withLock { $0.pictures }) {
        let (first, second) = (camera[number % 100], screen[number % 100])
        number += 1
        rig.loop.perform {
          ann.show(first, isKey: true, on: 1)
          ann.show(second, isKey: true, on: 2)
        }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    try await show { $0.count >= 5 }
    let before = bob.seen.withLock { $0.pictures }
    #expect(Set(before).isSubset(of: camera))
    rig.publish("ann", .video, source: .screen)
    try await show { pictures in pictures.count(where: { screen.contains($0) }) >= 5 }
    let all = bob.seen.withLock { $0.pictures }
    let start = try #require(all.firstIndex { screen.contains($0) })
    #expect(Set(all[..<start]).isSubset(of: camera) && Set(all[start...]).isSubset(of: screen))
    // It is the same slot all the time.
    #expect(rig.slots("bob", .video) == ["1": named("ann")])
  }

  @Test("rooms on several loops do not mix, and end all their sessions")
  func loops() async throws {
    let rig = try MediaRig { $0.loops = 3 }
    defer { rig.stop() }
    let names = (0..<6).map { "r\($0)" }
    var clients: [(client: MediaClient, byte: UInt8)] = []
    for (number, room) in names.enumerated() {
      rig.act(.roomBegan(named(room)))
      for (place, name) in ["a\(number)", "b\(number)"].enumerated() {
        rig.join(name, in: named(room))
        rig.publish(name, .audio)
        rig.subscribe(name, .audio)
        let client = rig.connect(name, [.audio(.sendOnly), .audio(.receiveOnly)])
        clients.append((client, UInt8(2 * number + place)))
      }
    }
    let all = clients
    try await rig.until { all.allSatisfy { rig.isConnected($0.client) } }
    try await talk(rig, all) { all.allSatisfy { !heard($0.client).isEmpty } }
    for (client, byte) in all { #expect(heard(client).allSatisfy { $0.bytes == [byte ^ 1] }) }
    #expect(rig.counts.sessions == 12)
    for room in names { rig.act(.roomEnded(named(room))) }
    try await rig.until { rig.counts.sessions == 0 }
    #expect(rig.errors().isEmpty)
  }

  /// A description without candidates, and what was taken from it.
  private static func bare(_ text: String) -> (text: String, candidates: [String]) {
    let lines = text.split(separator: "\r\n").map { String($0) }
    let candidates = lines.filter { $0.hasPrefix("a=candidate:") }.map { String($0.dropFirst(2)) }
    let rest = lines.filter { !$0.hasPrefix("a=candidate:") && $0 != "a=end-of-candidates" }
    return (rest.joined(separator: "\r\n") + "\r\n", candidates)
  }

  @Test(
    "a member is found by candidates that follow its offer, before the answer or after",
    arguments: [true, false])
  func trickled(isEarly: Bool) async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let found = Locked<[String]>([])
    let ann = rig.connect(
      "ann", [.audio(.sendOnly), .audio(.receiveOnly)],
      change: { text in
        let (bare, candidates) = Self.bare(text)
        found.withLock { $0 = candidates }
        return bare
      },
      // It does not know where the hub is: the hub has to find it.
      answered: { Self.bare($0).text })
    let bob = rig.connect("bob", [.audio(.sendOnly), .audio(.receiveOnly)])
    try await rig.until { rig.isConnected(bob) && rig.offers.withLock { $0["ann"] != nil } }
    if !isEarly { try await rig.until { rig.answers("ann").count == 1 } }
    #expect(!rig.isConnected(ann))
    // One that cannot be read does no harm.
    rig.act(.candidate(named("ann"), RoomCandidate("nonsense")))
    #expect(!found.withLock { $0.isEmpty })
    for text in found.withLock({ $0 }) { rig.act(.candidate(named("ann"), RoomCandidate(text, mid: "0"))) }
    rig.act(.candidate(named("ann"), RoomCandidate(nil)))
    try await rig.until { rig.isConnected(ann) }
    try await talk(rig, [(bob, 1)]) { !heard(ann).isEmpty }
  }

  @Test("with one slot for two members it goes to the one who speaks, and back when the other does")
  func turns() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob", "cay"] { rig.join(name) }
    for name in ["bob", "cay"] { rig.publish(name, .audio) }
    rig.subscribe("ann", .audio)
    let ann = rig.connect("ann", [.audio(.sendOnly), .audio(.receiveOnly)])
    let (bob, cay) = (rig.connect("bob", [.audio(.sendOnly)]), rig.connect("cay", [.audio(.sendOnly)]))
    try await rig.until { rig.isConnected(ann, bob, cay) && rig.slots("ann") == ["1": named("bob")] }
    try await talk(rig, [(cay, 2)]) {
      rig.slots("ann") == ["1": named("cay")] && heard(ann).last?.bytes == [2]
    }
    // Bob speaks while Cay has spoken lately, and then for long enough.
    try await talk(rig, [(bob, 1)]) {
      rig.slots("ann") == ["1": named("bob")] && heard(ann).last?.bytes == [1]
    }
    #expect(heard(ann).allSatisfy { $0.mid == "1" })
  }
}
