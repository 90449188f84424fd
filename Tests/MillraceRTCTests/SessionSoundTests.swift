import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("sound of a session")
struct SessionSoundTests {
  private func talk(_ pair: MediaPair, packets: Int) {
    pair.run(milliseconds: packets * 20, step: 20) { number in
      pair.a.sendSound([UInt8](repeating: UInt8(number % 250), count: 60), at: pair.now)
    }
    pair.run(milliseconds: 100)
  }

  @Test("a packet of sound says its codec, its arrival and, after the first report, its capture")
  func described() throws {
    let pair = try MediaPair([.audio()])
    talk(pair, packets: 500)
    #expect(pair.b.sounds.count == 500)
    let (first, last) = (try #require(pair.b.sounds.first), try #require(pair.b.sounds.last))
    #expect(first.codec.name == "opus" && first.capture == 0)
    let wall = WallClock.ntp(at: last.arrival).unixNanoseconds + 2_208_988_800_000_000_000
    #expect(abs(wall - last.capture - .milliseconds(20)) < .milliseconds(3))
    #expect(last.arrival - first.arrival == .milliseconds(499 * 20))
  }

  @Test("keys pass once each, with their length, also where packets are lost", arguments: [0, 3])
  func tones(_ lostOfTen: Int) throws {
    let pair = try MediaPair([.audio(codecs: [.opus, .pcmu])])
    var random = TestRandom(state: 3)
    pair.drops = { end, packet in
      end === pair.a && !packet.isRTCP && Int.random(in: 0..<10, using: &random) < lostOfTen
    }
    defer { pair.drops = { _, _ in false } }
    let media = try #require(pair.a.media)
    talk(pair, packets: 5)
    #expect(media.send(tones: "12*#D2", milliseconds: 100, gap: 70, at: pair.now))
    pair.a.due = pair.now
    talk(pair, packets: 100)
    #expect(String(pair.b.tones.map(\.digit)) == "12*#D2")
    #expect(pair.b.tones.allSatisfy { (20...100).contains($0.milliseconds) })
    if lostOfTen == 0 { #expect(pair.b.tones.allSatisfy { $0.milliseconds == 100 }) }
  }

  @Test("keys pass without any voice, also the same one twice")
  func silentTones() throws {
    let pair = try MediaPair([.audio(codecs: [.pcma])])
    let media = try #require(pair.a.media)
    #expect(media.send(tones: "55", milliseconds: 100, gap: 70, at: pair.now))
    pair.a.due = pair.now
    pair.run(milliseconds: 1_000)
    #expect(String(pair.b.tones.map(\.digit)) == "55")
  }

  @Test("the length of a key goes by the clock of its own format, whatever the voice's is")
  func toneClock() throws {
    var tones: RTPCodec?
    let pair = try MediaPair([.audio(codecs: [.opus, .pcmu])]) { offer in
      tones = offer.media[0].codecs.first { $0.name == "telephone-event" && $0.clockRate == 8_000 }
    }
    let payloadType = try #require(tones).payloadType
    pair.b.take(TestPacket.rtp(111, sequence: 1, ssrc: 77, payload: [1, 2, 3]), isRTCP: false, at: pair.now)
    #expect(pair.b.sounds.map(\.codec.clockRate) == [48_000])
    for sequence in UInt16(2)..<5 {
      // Key 5, over, after 800 units.
      let packet = TestPacket.rtp(
        payloadType, sequence: sequence, timestamp: 100, ssrc: 77, payload: [5, 0x8A, 0x03, 0x20])
      pair.b.take(packet, isRTCP: false, at: pair.now)
    }
    #expect(pair.b.tones.map(\.milliseconds) == [100])
  }

  @Test("a source that is over is forgotten, also where nothing of it was heard")
  func unheardGoodbye() throws {
    let pair = try MediaPair([.audio(), .video()])
    pair.b.take(TestPacket.goodbye(4_711), isRTCP: true, at: pair.now)
    #expect(pair.b.ended.isEmpty && pair.b.left.contains(4_711))
  }

  @Test("what is no key, and keys without end, are refused as a whole")
  func refusedTones() throws {
    let pair = try MediaPair([.audio()])
    let media = try #require(pair.a.media)
    for text in ["", "1x", "é", String(repeating: "1", count: 65)] {
      #expect(!media.send(tones: text, milliseconds: 100, gap: 70, at: pair.now))
    }
    pair.run(milliseconds: 500)
    #expect(pair.b.tones.isEmpty)
  }

  @Test("keys are refused where the peer takes none")
  func noTones() throws {
    let pair = try MediaPair([.audio()]) { offer in
      offer.media[0].codecs.removeAll { $0.name == "telephone-event" }
    }
    let media = try #require(pair.a.media)
    #expect(!media.send(tones: "1", milliseconds: 100, gap: 70, at: pair.now))
  }

  @Test("telephone events are offered with the clock of each codec, and numbers of their own")
  func offered() {
    var settings = RTCSessionSettings()
    settings.sections = [
      .audio(codecs: [.opus, .pcmu, .pcma, .l16(rate: 16_000, channels: 1)]), .video(),
    ]
    let sections = settings.describedSections()
    let tones = sections[0].codecs.filter { $0.name == "telephone-event" }
    #expect(tones.map(\.clockRate) == [48_000, 8_000, 16_000])
    let numbers = sections.flatMap { $0.codecs.map(\.payloadType) }
    #expect(Set(numbers).count == numbers.count)
    #expect(sections[0].source?.ssrc != sections[1].source?.ssrc)
    #expect(sections[0].source?.cname == sections[1].source?.cname)
    #expect(sections[0].headerExtensions.contains(RTPHeaderExtension.transportCC))
  }

  @Test("packets that come late after a BYE make no new source, within two seconds")
  func goodbye() throws {
    let pair = try MediaPair([.audio()])
    func packet(_ sequence: UInt16) {
      pair.b.take(
        TestPacket.rtp(111, sequence: sequence, ssrc: 77, payload: [1, 2, 3]), isRTCP: false, at: pair.now)
    }
    packet(1)
    pair.b.take(TestPacket.goodbye(77), isRTCP: true, at: pair.now)
    #expect(pair.b.ended == [77])
    packet(2)
    pair.run(milliseconds: 1_990)
    packet(3)
    #expect(pair.b.sounds.count == 1)
    pair.run(milliseconds: 20)
    packet(4)
    #expect(pair.b.sounds.count == 2)
    // A flood of ends is bounded.
    for ssrc in UInt32(1_000)..<2_000 { pair.b.take(TestPacket.goodbye(ssrc), isRTCP: true, at: pair.now) }
    #expect(pair.b.ended == [77])
  }

  @Test("a source that changes to a codec with another clock begins again")
  func clockRate() throws {
    let pair = try MediaPair([.audio(codecs: [.opus, .pcmu])])
    for (sequence, payloadType) in [(UInt16(1), UInt8(111)), (2, 111), (3, 0), (4, 0)] {
      pair.b.take(
        TestPacket.rtp(payloadType, sequence: sequence, ssrc: 8, payload: [1]), isRTCP: false, at: pair.now)
    }
    #expect(pair.b.sounds.map(\.codec.name) == ["opus", "opus", "PCMU", "PCMU"])
    #expect(pair.b.sounds.map(\.restarts) == [false, false, true, false])
    #expect(pair.b.media?.statistics.sound.receivedPackets == 4)
  }

  @Test("one number for sound and pictures, and for what this side sends, confuses nothing")
  func collision() throws {
    let pair = try MediaPair([.audio(), .video(codecs: [.vp8])])
    let own: UInt32 = 4_711
    let frame = TestPicture.vp8(isKey: true, count: 20, number: 1)
    for sequence in UInt16(0)..<5 {
      pair.b.take(
        TestPacket.rtp(111, sequence: sequence, ssrc: own, payload: [1]), isRTCP: false, at: pair.now)
      pair.b.take(
        TestPacket.rtp(
          96, sequence: sequence, timestamp: UInt32(sequence), ssrc: own, marker: true,
          payload: [0x10] + frame),
        isRTCP: false, at: pair.now)
    }
    #expect(pair.b.sounds.count == 5 && pair.b.pictures.count == 5)
    pair.run(milliseconds: 6_000)
    pair.b.take(TestPacket.goodbye(own), isRTCP: true, at: pair.now)
    #expect(pair.b.ended == [own, own])
  }

  @Test("packets come once, whatever is replayed, and sources have a limit")
  func replayed() throws {
    let pair = try MediaPair([.audio()])
    for _ in 0..<3 {
      for sequence in UInt16(0)..<10 {
        pair.b.take(
          TestPacket.rtp(111, sequence: sequence, ssrc: 8, payload: [1]), isRTCP: false, at: pair.now)
      }
    }
    #expect(pair.b.sounds.count == 10 && pair.b.media?.statistics.sound.duplicates == 20)
    for ssrc in UInt32(100)..<300 {
      pair.b.take(TestPacket.rtp(111, sequence: 1, ssrc: ssrc, payload: [1]), isRTCP: false, at: pair.now)
    }
    #expect(Set(pair.b.sounds.map(\.ssrc)).count == SoundEngine.sources)
  }

  @Test("sound alone is numbered, and its feedback measures the network")
  func feedback() throws {
    let pair = try MediaPair([.audio()])
    talk(pair, packets: 200)
    #expect(try #require(pair.a.media?.statistics.sendBitrate) > 0)
    let allocation = try #require(pair.a.allocations.last)
    #expect(allocation.video == 0 && (16_000...64_000).contains(allocation.sound))
  }
}
