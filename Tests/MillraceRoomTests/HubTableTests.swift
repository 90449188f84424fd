import MillraceCore
import MillraceCrypto
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: the tables of a hub") struct HubTableTests {
  @Test("deadlines come in order, whatever was set, moved and removed before")
  func deadlines() {
    var generator = SystemRandomNumberGenerator()
    var deadlines = Deadlines<Int>()
    var reference: [Int: Int64] = [:]
    for _ in 0..<5_000 {
      let key = Int.random(in: 0..<100, using: &generator)
      if Int.random(in: 0..<3, using: &generator) == 0 {
        deadlines.remove(key)
        reference[key] = nil
      } else {
        let time = Int64.random(in: 0..<1_000, using: &generator)
        deadlines.set(key, time)
        reference[key] = time
      }
      #expect(deadlines.count == reference.count)
      #expect(deadlines.next == reference.values.min())
      #expect(deadlines[key] == reference[key])
    }
    #expect(deadlines.popDue(at: (deadlines.next ?? 0) - 1) == nil)
    var times: [Int64] = []
    while let key = deadlines.popDue(at: .max) { times.append(reference.removeValue(forKey: key) ?? -1) }
    #expect(times == times.sorted())
    #expect(reference.isEmpty)
    #expect(deadlines.count == 0)
  }

  @Test("a limit lets through what it says at once, then one after the other")
  func rate() {
    let limit = RateLimit(perSecond: 10)
    var state: Nanoseconds = 0
    let taken = (0..<20).map { _ in limit.take(&state, at: 7) }
    #expect(taken.prefix(10).allSatisfy { $0 == nil })
    #expect(taken.dropFirst(10).allSatisfy { $0 == 100_000_000 })
    let next = [100_000_006, 100_000_007, 100_000_008].map { limit.take(&state, at: $0) }
    #expect(next == [1, nil, 99_999_999])
    let later = (0..<11).map { _ in limit.take(&state, at: 9_000_000_000) }
    #expect(later == [Nanoseconds?](repeating: nil, count: 10) + [100_000_000])
  }

  @Test("an address is forgotten when it has no connection and may join at its full rate again")
  func addresses() {
    var settings = RoomHubSettings()
    settings.connectionsPerAddress = 2
    settings.joinsPerSecond = 1
    var table = AddressTable(settings)
    #expect(table.connect("a") == true)
    #expect(table.connect("a") == true)
    #expect(table.connect("a") == false)
    #expect(table.connect("b") == true)
    #expect(table.join("a", at: 0) == nil)
    #expect(table.join("a", at: 0) == 1_000_000_000)
    table.disconnect("b", at: 0)
    table.disconnect("a", at: 0)
    #expect(table.count == 1 && table.deadline == nil)
    table.disconnect("a", at: 0)
    #expect(table.count == 1 && table.deadline == 1_000_000_000)
    // Nothing is gained by connecting again.
    #expect(table.connect("a") == true)
    #expect(table.join("a", at: 1) != nil)
    table.disconnect("a", at: 2)
    table.run(at: 1_000_000_000)
    #expect(table.count == 0 && table.deadline == nil)
  }

  @Test("a limit of many at once counts them together, and never lets more through than a burst")
  func rateOfMany() {
    let limit = RateLimit(perSecond: 1_000, burst: 100)
    var state: Nanoseconds = 0
    let first = limit.take(60, &state, at: 5)
    let second = limit.take(60, &state, at: 5)
    #expect(first == nil && second == 20_000_000)
    let later = limit.take(60, &state, at: 20_000_005)
    #expect(later == nil)
    var full: Nanoseconds = 0
    #expect(limit.wait(100, full, at: 5) == nil && limit.wait(101, full, at: 5) == 1_000_000)
    // What has happened already counts, however much it was.
    let pause = limit.charge(300, &full, at: 0)
    #expect(pause == 201_000_000)
    #expect(limit.wait(1, full, at: 201_000_000) == nil && limit.wait(1, full, at: 200_999_999) != nil)
  }

  @Test("an address that offers or sends very much is not forgotten before that counts no more")
  func busyAddress() {
    var settings = RoomHubSettings()
    settings.joinsPerSecond = 2
    var table = AddressTable(settings)
    #expect(table.connect("a") == true)
    let offers = (0..<3).map { _ in table.offer("a", at: 0) }
    #expect(offers == [nil, nil, 500_000_000])
    #expect(table.join("a", at: 0) == nil, "joins are counted by themselves")
    // 1,600 units a second.
    let pauses = [1_599, 1, 1_600].map { table.read($0, of: "a", at: 0) }
    #expect(pauses == [0, 625_000, 1_000_625_000])
    table.disconnect("a", at: 0)
    #expect(table.count == 1 && table.deadline == 2_000_000_000)
    table.run(at: 2_000_000_000)
    #expect(table.count == 0)
    let pause = table.read(5_000, of: "unknown", at: 0)
    #expect(pause == 0)
  }

  private func instant(_ now: Nanoseconds, _ unix: Int64) -> RoomInstant {
    RoomInstant(now, unixMilliseconds: unix)
  }

  @Test("a value that lets in once is kept until its token ends, and none is forgotten for another")
  func once() {
    var table = OnceTable(most: 2)
    #expect(table.insert("a", until: instant(1_100, 100)) == true)
    #expect(table.insert("b", until: instant(1_050, 50)) == true)
    #expect(table.insert("c", until: instant(1_070, 70)) == false)
    table.forget(at: instant(1_049, 49))
    #expect(table.contains("a") && table.contains("b") && table.count == 2)
    table.forget(at: instant(1_050, 50))
    #expect(table.contains("a") && !table.contains("b"))
    #expect(table.insert("c", until: instant(1_070, 70)) == true)
    table.forget(at: instant(1_100, 100))
    #expect(table.count == 0)
  }

  @Test("a value that lets in once is kept until its token has ended by both clocks")
  func onceByBothClocks() {
    var table = OnceTable(most: 2)
    #expect(table.insert("a", until: instant(1_100, 100)) == true)
    // The wall clock jumps ahead, and back.
    table.forget(at: instant(1_010, 5_000))
    #expect(table.contains("a"))
    table.forget(at: instant(1_020, 20))
    #expect(table.contains("a"))
    table.forget(at: instant(1_100, 30))
    #expect(table.count == 0, "both ends have passed, at one time or another")
    // It was ahead when the token came, and is set right.
    #expect(table.insert("b", until: instant(1_200, 200)) == true)
    table.forget(at: instant(1_300, 199))
    #expect(table.contains("b"))
    table.forget(at: instant(1_301, 200))
    #expect(table.count == 0)
  }

  @Test("a subscription to all is also for those who join later, and a single peer can be left out or added")
  func subscriptions() {
    let (first, second) = (named("first"), named("second"))
    var subscriptions = RoomSubscriptions()
    #expect(!subscriptions.includes(.audio, of: first))
    subscriptions.apply(RoomSubscription(.audio, isOn: true, peer: first))
    #expect(subscriptions.includes(.audio, of: first) && !subscriptions.includes(.audio, of: second))
    #expect(!subscriptions.includes(.video, of: first))
    subscriptions.apply(RoomSubscription(.audio, isOn: true))
    #expect(subscriptions.includes(.audio, of: first) && subscriptions.includes(.audio, of: second))
    subscriptions.apply(RoomSubscription(.audio, isOn: false, peer: first))
    #expect(!subscriptions.includes(.audio, of: first) && subscriptions.includes(.audio, of: second))
    subscriptions.forget(first)
    #expect(subscriptions.includes(.audio, of: first))
    subscriptions.apply(RoomSubscription(.audio, isOn: false))
    #expect(subscriptions == RoomSubscriptions())
  }

  @Test("base64url is written without padding, and read strictly")
  func base64() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 151 + 250) }
      let text = Base64URL.encode(bytes)
      #expect(!text.contains { "+/=".contains($0) })
      #expect(Base64URL.decode(text[...]) == bytes)
    }
    for text in ["A", "AAAAA", "AA=", "AB", "AAB", "A+AA", "A/AA", "A A", "é"] {
      #expect(Base64URL.decode(text[...]) == nil, "\(text)")
    }
  }

  @Test("settings that cannot work are refused in words")
  func settings() {
    #expect(RoomHubSettings().problem == nil)
    var settings = RoomHubSettings(key: SecretKey(utf8: ""))
    #expect(settings.problem == "the key of the hub is empty; set one, or none")
    settings = RoomHubSettings()
    settings.membersPerRoom = 151
    #expect(settings.problem == "a room cannot have 151 members; choose 1 to 150")
    settings = RoomHubSettings()
    settings.rooms = 0
    #expect(settings.problem == "0 rooms are not possible; choose 1 to 1000000")
    settings = RoomHubSettings()
    settings.offerSeconds = 86_401
    #expect(settings.problem == "86401 s are not possible for the answer to an offer; choose 1 to 86400")
    settings = RoomHubSettings()
    settings.messageBytesPerSecond = 1_023
    #expect(
      settings.problem
        == "1023 bytes of messages a second are not possible; choose 1024 to 1000000000")
    settings = RoomHubSettings()
    settings.servers = Array(repeating: RoomServer("stun:a"), count: 17)
    #expect(settings.problem == "17 STUN and TURN servers are too many; name up to 16")
    settings.servers = [RoomServer("turn:a", password: String(repeating: "p", count: 257))]
    #expect(
      settings.problem == "a text of a STUN or TURN server is longer than 256 bytes; use a shorter one")
  }
}
