import MillraceDialog
import Testing

@testable import MillraceTuya

/// An agent that hears and speaks.
private let voice = TuyaTerms(sends: [.audio, .text, .image], receives: [.audio, .text])

/// Channels, which have to be there.
private func taken(_ channels: TuyaChannels?) throws -> TuyaChannels { try #require(channels) }

@Suite("Tuya: data channels") struct LinkChannelTests {
  @Test("numbers are odd to the cloud and even from it, in the order of the terms")
  func order() throws {
    var pool = TuyaChannelPool()
    let first = try taken(pool.take(voice, isShared: false))
    #expect(first.sends.map(\.id) == [1, 3, 5])
    #expect(first.sends.map(\.kind) == [.audio, .text, .image])
    #expect(first.receives.map(\.id) == [2, 4])
    let second = try taken(pool.take(voice, isShared: false))
    #expect(second.sends.map(\.id) == [7, 9, 11])
    #expect(second.receives.map(\.id) == [6, 8])
  }

  @Test("twenty sessions have numbers of their own, none of them reserved")
  func many() throws {
    var pool = TuyaChannelPool()
    var all: [UInt16] = []
    for _ in 0..<TuyaTarget.mostSessions {
      let channels = try taken(
        pool.take(
          TuyaTerms(
            sends: [.video, .audio, .image, .file, .text], receives: [.audio, .text, .image, .file]),
          isShared: false))
      all += (channels.sends + channels.receives).map(\.id)
      #expect(channels.sends.allSatisfy { $0.id % 2 == 1 })
      #expect(channels.receives.allSatisfy { $0.id % 2 == 0 })
    }
    #expect(Set(all).count == all.count)
    #expect(!all.contains { $0 % 2 == 1 && (101...119).contains($0) })
  }

  @Test("numbers to the cloud that have rested come before those behind the reserved ones, the oldest first")
  func again() throws {
    var pool = TuyaChannelPool()
    let two = TuyaTerms(sends: [.audio, .text], receives: [.audio])
    var all = try (0..<25).map { _ in try taken(pool.take(two, isShared: false)) }
    #expect(all.last?.sends.map(\.id) == [97, 99])
    pool.give(back: all[7])
    pool.give(back: all[3])
    all = [try taken(pool.take(two, isShared: false)), try taken(pool.take(two, isShared: false))]
    #expect(all.flatMap { $0.sends.map(\.id) } == [29, 31, 13, 15])
    // All below are in use.
    let high = try taken(pool.take(two, isShared: false))
    #expect(high.sends.map(\.id) == [121, 123])
    // Those below are preferred, however long others have rested.
    pool.give(back: high)
    pool.give(back: all[0])
    for _ in 0..<1_000 {
      let channels = try taken(pool.take(two, isShared: false))
      #expect(channels.sends.allSatisfy { $0.id < 101 })
      pool.give(back: channels)
    }
  }

  @Test("of the videos that sessions share, six have reserved numbers, and the next has its own")
  func sharedVideos() throws {
    var pool = TuyaChannelPool()
    let terms = TuyaTerms(sends: [TuyaDataKind](repeating: .video, count: 7), receives: [.audio])
    let channels = try taken(pool.take(terms, isShared: true))
    #expect(channels.sends.map(\.id) == [101, 111, 113, 115, 117, 119, 1])
  }

  @Test("sessions with more channels than there are numbers are refused with the cure, and take none away")
  func tooMany() throws {
    var routes = TuyaRoutes()
    let large = TuyaTerms(sends: [TuyaDataKind](repeating: .image, count: 1_500), receives: [.text])
    _ = try routes.create(1, TuyaCreation(id: "s1", isShared: false, userData: nil), large)
    let error = #expect(throws: DialogError.self) {
      try routes.create(2, TuyaCreation(id: "s2", isShared: false, userData: nil), large)
    }
    #expect(error?.code == 39_002)
    #expect(error?.reaction == .refuse)
    #expect(error?.text.contains("give some of the nodes another \"connection\"") == true)
    _ = try routes.create(3, TuyaCreation(id: "s3", isShared: false, userData: nil), voice)
  }

  @Test("sessions that share their data use the reserved numbers, and receive on their own")
  func shared() throws {
    var pool = TuyaChannelPool()
    let terms = TuyaTerms(sends: [.video, .audio, .image, .file, .text, .video, .audio], receives: [.audio])
    let first = try taken(pool.take(terms, isShared: true))
    let second = try taken(pool.take(terms, isShared: true))
    #expect(first.sends.map(\.id) == [101, 103, 105, 107, 109, 111, 1])
    #expect(second.sends.map(\.id) == [101, 103, 105, 107, 109, 111, 3])
    #expect(first.receives.map(\.id) == [2])
    #expect(second.receives.map(\.id) == [4])
  }

  @Test("the numbers of a session that has ended rest while there are fresh ones")
  func rest() throws {
    var pool = TuyaChannelPool()
    let first = try taken(pool.take(voice, isShared: false))
    pool.give(back: first)
    let second = try taken(pool.take(voice, isShared: false))
    #expect(second.sends.map(\.id) == [7, 9, 11])
    for _ in 0..<10_000 { pool.give(back: try taken(pool.take(voice, isShared: false))) }
  }

  @Test("a channel is found by its kind where there is one, and by its number where there are several")
  func names() throws {
    var pool = TuyaChannelPool()
    let channels = try taken(pool.take(TuyaTerms(sends: [.audio, .image, .image]), isShared: false))
    #expect(try channels.id(of: TuyaChannelName(.audio)) == 1)
    #expect(try channels.id(of: TuyaChannelName(.image, 1)) == 5)
    for name in [TuyaChannelName(.image), TuyaChannelName(.image, 2), TuyaChannelName(.file)] {
      let error = #expect(throws: DialogError.self) { try channels.id(of: name) }
      #expect(error?.code == 39_007)
    }
  }

  @Test("a packet finds its session by the session's id, or by the number of its channel")
  func routes() throws {
    var routes = TuyaRoutes()
    for line in 1...2 {
      _ = try routes.create(line, TuyaCreation(id: "s\(line)", isShared: false, userData: nil), voice)
    }
    #expect(routes.lines(session: "s2", listed: nil, dataID: nil) == [2])
    #expect(routes.lines(session: "s9", listed: nil, dataID: 2) == [])
    #expect(routes.lines(session: nil, listed: nil, dataID: 2) == [1])
    #expect(routes.lines(session: nil, listed: nil, dataID: 8) == [2])
    #expect(routes.lines(session: nil, listed: nil, dataID: 10) == [])
    #expect(routes.lines(session: nil, listed: ["s1"], dataID: 8) == [])
    #expect(routes.lines(session: nil, listed: ["s1", "s2"], dataID: 8) == [2])
    #expect(routes.lines(session: nil, listed: nil, dataID: nil) == [])
    routes.close(2)
    #expect(routes.lines(session: "s2", listed: nil, dataID: nil) == [])
  }

  @Test("an id that another session of the connection has is refused")
  func sameID() throws {
    var routes = TuyaRoutes()
    _ = try routes.create(1, TuyaCreation(id: "s", isShared: false, userData: nil), voice)
    let error = #expect(throws: DialogError.self) {
      try routes.create(2, TuyaCreation(id: "s", isShared: false, userData: nil), voice)
    }
    #expect(error?.code == 39_002)
    #expect(error?.reaction == .refuse)
  }
}

@Suite("Tuya: one microphone for several sessions") struct LinkSharedTests {
  /// A frame of sound with this number.
  private func frame(_ number: UInt8) -> [UInt8] { [number, number &+ 1, number] }

  @Test("the frames of one session are sent, and those of the others swallowed")
  func once() {
    var streams = TuyaSharedStreams()
    for number in 0..<10 as Range<UInt8> {
      check(streams.takes(frame(number), of: 1, on: 103))
      check(!streams.takes(frame(number), of: 2, on: 103))
    }
    #expect(streams.leader(on: 103) == 1)
  }

  @Test("the next session takes over when the first ends, without repeating a frame")
  func handOver() {
    var streams = TuyaSharedStreams()
    for number in 0..<10 as Range<UInt8> { _ = streams.takes(frame(number), of: 1, on: 103) }
    // The other one is three frames behind.
    for number in 0..<7 as Range<UInt8> { _ = streams.takes(frame(number), of: 2, on: 103) }
    check(streams.end(1, on: 103))
    let sent = (7..<14 as Range<UInt8>).filter { streams.takes(frame($0), of: 2, on: 103) }
    #expect(sent == [10, 11, 12, 13])
    #expect(streams.leader(on: 103) == 2)
  }

  /// The first leads through these frames and leaves while the second follows; what is sent of the second's frames.
  private func sent(_ led: [UInt8], then followed: [UInt8]) -> [UInt8] {
    var streams = TuyaSharedStreams()
    for number in led { _ = streams.takes(frame(number), of: 1, on: 103) }
    _ = streams.takes(frame(led[0]), of: 2, on: 103)
    check(streams.leave(1), [103])
    return followed.filter { streams.takes(frame($0), of: 2, on: 103) }
  }

  @Test(
    "digital silence of the session that takes over is sent: no more is swallowed than the first had sent")
  func silence() {
    let silence = [UInt8](repeating: 0, count: 60)
    #expect(sent([1, 2, 3] + silence.prefix(10), then: silence).count == 50)
    #expect(sent(silence, then: silence).count == 10)
  }

  @Test("frames are compared in their order, so that a new one that equals an old one is sent")
  func order() {
    #expect(sent([1, 0, 0, 2, 3], then: [0, 0, 2, 3, 0, 1, 2]) == [0, 1, 2])
    #expect(sent([1, 0, 0, 2, 3], then: [0, 2, 3, 2]) == [2])
    #expect(sent([1, 2, 3, 4], then: [2, 4, 3]) == [4, 3])
  }

  @Test("a session that ends after it took over leaves the next one to compare with its own frames")
  func third() {
    var streams = TuyaSharedStreams()
    for number in 1...3 as ClosedRange<UInt8> {
      for session in 1...3 { _ = streams.takes(frame(number), of: session, on: 103) }
    }
    check(streams.end(1, on: 103))
    check(!streams.takes(frame(3), of: 3, on: 103))
    for number in 4...60 as ClosedRange<UInt8> { check(streams.takes(frame(number), of: 2, on: 103)) }
    check(streams.end(2, on: 103))
    check(!streams.takes(frame(60), of: 3, on: 103))
    check(streams.takes(frame(61), of: 3, on: 103))
  }

  @Test("the end of a session that follows changes nothing")
  func followerEnds() {
    var streams = TuyaSharedStreams()
    _ = streams.takes(frame(1), of: 1, on: 103)
    _ = streams.takes(frame(1), of: 2, on: 103)
    check(!streams.end(2, on: 103))
    check(streams.takes(frame(2), of: 1, on: 103))
  }

  @Test("a session that leaves gives up what it led")
  func leaves() {
    var streams = TuyaSharedStreams()
    _ = streams.takes(frame(1), of: 1, on: 103)
    _ = streams.takes(frame(1), of: 1, on: 101)
    _ = streams.takes(frame(1), of: 2, on: 107)
    check(streams.leave(1), [101, 103])
    check(streams.takes(frame(2), of: 2, on: 103))
  }

  @Test("a picture that another session has just sent for all is not sent again")
  func pictures() {
    var streams = TuyaSharedStreams()
    check(!streams.repeats([1, 2], of: 1, on: 105, at: 1_000))
    check(streams.repeats([1, 2], of: 2, on: 105, at: 1_500))
    check(!streams.repeats([1, 2], of: 1, on: 105, at: 1_600))
    check(!streams.repeats([1, 3], of: 2, on: 105, at: 1_600))
    check(!streams.repeats([1, 2], of: 2, on: 105, at: 5_000))
    check(!streams.repeats([1, 2], of: 2, on: 5, at: 5_000))
    check(!streams.repeats([1, 2], of: 3, on: 5, at: 5_000))
  }
}
