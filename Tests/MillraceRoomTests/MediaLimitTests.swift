import MillraceCore
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRTC
@testable import MillraceRoom

@Suite("Room: members that ask too much of media", .timeLimit(.minutes(20))) struct MediaLimitTests {
  /// Pictures that were shown.
  private struct Shown: Sendable {
    var last: Nanoseconds
    var count = 0
  }

  private let clock = ContinuousClock()

  private func sound(slots: Int) -> [MediaSection] {
    [.audio(.sendOnly)] + (0..<slots).map { _ in .audio(.receiveOnly) }
  }

  private func video(slots: Int) -> [MediaSection] {
    [.audio(.sendOnly), .video(.sendOnly, codecs: [.vp8])]
      + (0..<slots).map { _ in .video(.receiveOnly, codecs: [.vp8]) }
  }

  private func pictures(_ client: MediaClient) -> [[UInt8]] { client.seen.withLock { $0.pictures } }

  /// Waits until something has happened, for a minute.
  private func soon(_ condition: () -> Bool) async throws {
    let end = clock.now + .seconds(60)
    while !condition(), clock.now < end { try await Task.sleep(for: .milliseconds(5)) }
  }

  // MARK: Slots

  @Test("what members change in between is settled at once, ten times a second at most")
  func settled() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) }
    try await rig.carriedOut("ann")
    let (before, start) = (rig.counts.settlements, clock.now)
    for number in 0..<2_000 {
      rig.subscribe("ann", .audio, number % 2 == 1)
      if number % 100 == 0 { try await Task.sleep(for: .milliseconds(1)) }
    }
    // The last word counts.
    try await rig.until { rig.slots("ann") == ["1": named("bob")] }
    let tenths = Int((clock.now - start) / Duration.milliseconds(100))
    #expect(rig.counts.settlements - before <= tenths + 2)
  }

  @Test("messages are not forwarded, and who subscribes to them changes nothing")
  func data() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let ann = rig.connect("ann", sound(slots: 1))
    try await rig.until { rig.isConnected(ann) && !rig.slots("ann").isEmpty }
    // What the connection has changed is settled by then.
    rig.subscribe("ann", .audio, false)
    try await rig.until { rig.slots("ann").isEmpty }
    var before = -1
    while before != rig.counts.settlements {
      before = rig.counts.settlements
      try await Task.sleep(for: .milliseconds(500))
    }
    for number in 0..<10 {
      rig.subscribe("ann", .data, number % 2 == 0)
      rig.publish("bob", .data, number % 2 == 0)
      try await Task.sleep(for: .milliseconds(50))
    }
    try await rig.carriedOut("ann")
    #expect(rig.counts.settlements == before)
  }

  @Test("pictures that are published again begin with a key frame, however soon that is")
  func again() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("ann", .video)
    rig.subscribe("bob", .video)
    let (ann, bob) = (rig.connect("ann", video(slots: 0)), rig.connect("bob", video(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) && !rig.slots("bob", .video).isEmpty }
    var number = 0
    func show(isKey: Bool, until condition: () -> Bool) async throws {
      while !condition() {
        number += 1
        let picture = MediaPicture.vp8(isKey: isKey, number: number)
        rig.loop.perform { ann.show(picture, isKey: isKey) }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    try await show(isKey: true) { pictures(bob).count >= 3 }
    var last = -1
    while last != pictures(bob).count {
      last = pictures(bob).count
      try await Task.sleep(for: .milliseconds(1_500))
    }
    // The first is settled at once, so that the others come in between.
    rig.subscribe("bob", .audio)
    rig.publish("ann", .video, false)
    rig.publish("ann", .video)
    try await rig.carriedOut("ann")
    let waiting = rig.counts.awaitingKeyFrame
    try await show(isKey: false) { rig.counts.awaitingKeyFrame >= waiting + 5 || pictures(bob).count > last }
    #expect(pictures(bob).count == last)
    try await show(isKey: true) { pictures(bob).count > last }
  }

  // MARK: What is sent

  @Test("of sound that comes much faster than any sound does only as much is sent on as one has")
  func ceiling() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("bob", .audio)
    rig.subscribe("ann", .audio)
    let (ann, bob) = (rig.connect("ann", sound(slots: 1)), rig.connect("bob", sound(slots: 0)))
    try await rig.until { rig.isConnected(ann, bob) && !rig.slots("ann").isEmpty }
    let start = clock.now
    while rig.counts.excessive < 300 {
      rig.loop.perform { for _ in 0..<50 { bob.say([1]) } }
      try await Task.sleep(for: .milliseconds(5))
    }
    let sounds = rig.counts.sounds
    let seconds = Int((clock.now - start) / Duration.seconds(1)) + 1
    #expect(sounds <= 121 * (seconds + 1))
  }

  @Test("a video that takes more than any may is not sent on, and nobody else's pauses because of it")
  func excessive() async throws {
    let media = try DirectMedia()
    let rig = try MediaRig(media)
    defer { rig.stop() }
    for name in ["ann", "cay", "bob"] { rig.join(name) }
    for name in ["ann", "cay"] { rig.publish(name, .video) }
    rig.subscribe("bob", .video)
    let (ann, cay) = (rig.connect("ann", video(slots: 0)), rig.connect("cay", video(slots: 0)))
    let bob = rig.connect("bob", video(slots: 2))
    try await rig.until { rig.isConnected(ann, bob, cay) && rig.slots("bob", .video).count == 2 }
    for name in ["ann", "bob", "cay"] { try await media.connected(name) }
    #expect(rig.slots("bob", .video)["2"] == named("ann"))
    let time = Clock(.realtime)
    let begun = time.now
    let numbers = Locked(Shown(last: begun))
    /// A key picture of each, of 16 Mbit/s and of 400 bytes.
    func show() async {
      await media.with("bob") { _ in
        let now = time.now
        let (passed, number) = numbers.withLock { (state: inout Shown) -> (Nanoseconds, Int) in
          defer { state = Shown(last: now, count: state.count + 1) }
          return (now - state.last, state.count)
        }
        // Its content is of no meaning: it is measured before it is sent.
        let large = [UInt8](repeating: 0x10, count: max(1_000, Int(passed / 500)))
        let small = MediaPicture.vp8(isKey: true, number: number)
        let picture = ReceivedPicture(
          ssrc: 7, codec: .vp8, timestamp: (now - begun) * 9 / 100_000, capture: 0, arrival: now, isKey: true,
          isDamaged: false, followsLoss: false, medium: 1)
        media.room?.member(named("bob"))?.sessionAllocated(sound: 0, video: 400_000)
        media.room?.member(named("ann"))?.sessionReceived(picture, large.span)
        media.room?.member(named("cay"))?.sessionReceived(picture, small.span)
      }
    }
    // Measured over a second, and then seen within a fifth.
    let end = clock.now + .seconds(60)
    while media.counters.counts.paused < 10, clock.now < end {
      await show()
      try await Task.sleep(for: .milliseconds(40))
    }
    let sent = numbers.withLock { $0.count }
    #expect(media.counters.counts.paused >= 10)
    func ofCay() -> Int {
      let later = Set((sent..<sent + 100).map { MediaPicture.vp8(isKey: true, number: $0) })
      return pictures(bob).count { later.contains($0) }
    }
    for _ in 0..<100 where ofCay() < 20 {
      await show()
      try await Task.sleep(for: .milliseconds(40))
    }
    try await soon { ofCay() >= 20 }
    #expect(ofCay() >= 20)
  }

  // MARK: Key frames

  @Test("a receiver that asks for key frames again and again gets one every two seconds")
  func storm() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    rig.publish("ann", .video)
    rig.subscribe("bob", .video)
    let (ann, bob) = (rig.connect("ann", video(slots: 0)), rig.connect("bob", video(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) && !rig.slots("bob", .video).isEmpty }
    var (number, answered) = (0, 0)
    let start = clock.now
    let before = rig.keyFrames(of: "ann")
    while clock.now - start < Duration.seconds(12) {
      number += 1
      let wanted = ann.seen.withLock { $0.keyFramesWanted }
      let isKey = number == 1 || wanted != answered
      answered = wanted
      let picture = MediaPicture.vp8(isKey: isKey, number: number)
      rig.loop.perform {
        ann.show(picture, isKey: isKey)
        bob.session?.requestKeyFrame()
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    let count = rig.keyFrames(of: "ann") - before
    // One that was lost is asked for again after a second.
    #expect(count <= Int((clock.now - start) / Duration.seconds(2)) + 4)
    #expect(count >= 1)
  }

  @Test("a key frame is asked for again where none comes and nothing else does, but not for ever")
  func still() async throws {
    let rig = try MediaRig()
    defer { rig.stop() }
    for name in ["ann", "bob"] { rig.join(name) }
    let (ann, bob) = (rig.connect("ann", video(slots: 0)), rig.connect("bob", video(slots: 1)))
    try await rig.until { rig.isConnected(ann, bob) }
    rig.loop.perform { ann.show(MediaPicture.vp8(isKey: true, number: 1), isKey: true) }
    try await rig.until { rig.counts.unpublished == 1 }
    rig.publish("ann", .video)
    rig.subscribe("bob", .video)
    try await soon { rig.keyFrames(of: "ann") >= 4 }
    #expect(rig.keyFrames(of: "ann") == 4)
    try await Task.sleep(for: .milliseconds(1_500))
    #expect(rig.keyFrames(of: "ann") == 4)
    rig.loop.perform { ann.show(MediaPicture.vp8(isKey: true, number: 2), isKey: true) }
    try await rig.until { !pictures(bob).isEmpty }
  }
}
