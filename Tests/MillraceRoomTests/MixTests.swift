import MillraceCore
import MillraceRTCSound
import Testing

@testable import MillraceRoom

@Suite("Room: the mix") struct MixTests {
  /// What is not there, in dB.
  private let absent = -50.0
  /// Tones have an amplitude of 0.3: -10 dB.
  private let present = -16.0

  @Test("each member hears the tones of all others and never its own")
  func others() throws {
    let rig = try MixRig(4)
    rig.talk(0, 1, 2)
    rig.step(150)
    for (own, member) in rig.members.enumerated() {
      for other in 0..<3 {
        let level = member.ear.level(MixRig.tones[other], frames: 50)
        if other == own { #expect(level <= absent) } else { #expect(level >= present) }
      }
    }
  }

  @Test("who ends its sound hears the others without a gap, and nothing of its own voice comes back")
  func ended() throws {
    let rig = try MixRig(4)
    rig.talk(0, 1, 2)
    rig.step(100)
    let ann = rig.members[0]
    rig.talk(1, 2)
    ann.seat.endSource()
    rig.step(20)
    #expect(ann.seat.isHeard == false && ann.seat.stream == .shared)
    #expect(ann.ear.highest(MixRig.tones[0], frames: 30) <= absent)
    for tone in [MixRig.tones[1], MixRig.tones[2]] {
      for before in 0..<28 { #expect(ann.ear.level(tone, frames: 2, before: before) >= present) }
    }
    // The others have lost it.
    #expect(rig.members[3].ear.level(MixRig.tones[0], frames: 10) <= absent)
    #expect(rig.members[3].ear.pauses.dropFirst().allSatisfy { $0 == 0 })
  }

  @Test("who begins to talk hears the others without a gap, and never its own voice")
  func begun() throws {
    let rig = try MixRig(4)
    rig.talk(1, 2)
    rig.step(100)
    let ann = rig.members[0]
    #expect(ann.seat.stream == .shared)
    rig.talk(0, 1, 2)
    rig.step(25)
    #expect(ann.seat.isHeard && ann.seat.stream == .own)
    #expect(ann.ear.highest(MixRig.tones[0], frames: 30) <= absent)
    for tone in [MixRig.tones[1], MixRig.tones[2]] {
      for before in 0..<28 { #expect(ann.ear.level(tone, frames: 2, before: before) >= present) }
    }
    #expect(rig.members[3].ear.level(MixRig.tones[0], frames: 10) >= present)
  }

  @Test("voices that come and go, alone and together, are never heard by their own members")
  func turns() throws {
    let rig = try MixRig(3)
    let turns: [[Int]] = [[0], [1], [0, 1], [], [2], [0, 2], [1], [], [0, 1, 2], [1, 2], [0]]
    for talkers in turns {
      for (number, member) in rig.members.enumerated() {
        member.talks = talkers.contains(number)
        if !member.talks, number == 0 { member.seat.endSource() }
      }
      rig.step(60)
    }
    for (own, member) in rig.members.enumerated() {
      let frames = member.ear.sound.count / RoomMixer.frame
      #expect(frames > 300)
      // The click with which another tone begins is at -40 dB here; 10 ms of the own voice would be at -23.
      #expect(member.ear.highest(MixRig.tones[own], frames: frames - 2) <= -30)
    }
  }

  @Test("a voice alone is encoded once for all others, and nothing for itself")
  func once() throws {
    let rig = try MixRig(8)
    rig.talk(0)
    rig.step(50)
    let before = rig.mixer.encodings
    rig.step(100)
    #expect(rig.mixer.encodings - before == 100)
    #expect(rig.members[0].ear.packets == 0)
    for member in rig.members.dropFirst() {
      #expect(member.ear.level(MixRig.tones[0], frames: 50) >= present)
    }
  }

  @Test("where nobody is heard nothing is sent after a fifth of a second, and timestamps keep the time")
  func quiet() throws {
    let rig = try MixRig(3)
    rig.talk(0)
    rig.step(60)
    let bob = rig.members[1]
    // Silence is sent, and half a second of it may be a pause between words.
    rig.members[0].voice.amplitude = 0
    rig.step(45)
    let sent = bob.ear.packets
    rig.step(50)
    #expect(bob.ear.packets == sent)
    rig.members[0].voice.amplitude = 0.3
    rig.step(20)
    #expect(bob.ear.packets > sent)
    #expect(bob.ear.pauses[sent] >= 50 * RoomMixer.frame)
    #expect(bob.ear.pauses.dropFirst(sent + 1).allSatisfy { $0 == 0 })
    #expect(bob.ear.sound.count == rig.frames * RoomMixer.frame)
    #expect(bob.ear.level(MixRig.tones[0], frames: 10) >= present)
  }

  @Test("without packets the mixer sleeps, and works with the next one as if it had not")
  func sleeps() throws {
    let rig = try MixRig(2)
    rig.talk(0)
    rig.step(60)
    rig.talk()
    rig.step(400)
    #expect(rig.mixer.due == nil)
    let bob = rig.members[1]
    let (sent, encodings) = (bob.ear.packets, rig.mixer.encodings)
    rig.step(100)
    rig.talk(0)
    rig.step(50)
    #expect(rig.mixer.due != nil && bob.ear.packets > sent && rig.mixer.encodings > encodings)
    #expect(bob.ear.sound.count == rig.frames * RoomMixer.frame)
    #expect(bob.ear.level(MixRig.tones[0], frames: 20) >= present)
  }

  @Test("late by seconds, frames are left out and not made up for, and timestamps keep the time")
  func late() throws {
    let rig = try MixRig(3)
    rig.talk(0, 1)
    rig.step(60)
    let before = rig.members.map(\.ear.packets)
    rig.stall(200)
    rig.step(1)
    for (member, count) in zip(rig.members, before) { #expect(member.ear.packets - count == 1) }
    rig.step(60)
    for member in rig.members { #expect(member.ear.sound.count == rig.frames * RoomMixer.frame) }
    #expect(rig.members[2].ear.level(MixRig.tones[0], frames: 20) >= present)
    #expect(rig.members[0].ear.level(MixRig.tones[0], frames: 20) <= absent)
  }

  @Test("late by less, frames are made up for")
  func hasty() throws {
    let rig = try MixRig(2)
    rig.talk(0)
    rig.step(60)
    let before = rig.members[1].ear.packets
    rig.stall(8)
    rig.step(1)
    #expect(rig.members[1].ear.packets - before == 9)
    #expect(rig.members[1].ear.sound.count == rig.frames * RoomMixer.frame)
  }

  @Test("three loud voices together stay below full scale")
  func loud() throws {
    let rig = try MixRig(4)
    for member in rig.members { member.voice.amplitude = 0.9 }
    // Beginning at different times, each is a step up.
    rig.talk(0)
    rig.step(50)
    rig.talk(0, 1)
    rig.step(50)
    rig.talk(0, 1, 2)
    rig.step(50)
    for member in rig.members {
      let peak = member.ear.sound.reduce(0) { max($0, $1.magnitude) }
      #expect(peak < 1)
    }
    for tone in MixRig.tones.prefix(3) { #expect(rig.members[3].ear.level(tone, frames: 25) >= present) }
  }

  @Test("of more voices than are heard at a time the loudest are, and another has to be clearly louder")
  func loudest() throws {
    var settings = RoomMixSettings()
    settings.voices = 2
    let rig = try MixRig(5, settings)
    for (number, amplitude) in [0.1, 0.2, 0.12, 0.6].enumerated() {
      rig.members[number].voice.amplitude = amplitude
    }
    rig.talk(0, 1)
    rig.step(40)
    rig.talk(0, 1, 2)
    rig.step(40)
    #expect(rig.members.map(\.seat.isHeard) == [true, true, false, false, false])
    rig.talk(0, 1, 2, 3)
    rig.step(60)
    #expect(rig.members.map(\.seat.isHeard) == [false, true, false, true, false])
    let ear = rig.members[4].ear
    #expect(
      ear.level(MixRig.tones[0], frames: 30) <= absent && ear.level(MixRig.tones[2], frames: 30) <= absent)
    #expect(
      ear.level(MixRig.tones[1], frames: 30) >= -20 && ear.level(MixRig.tones[3], frames: 30) >= present)
    // Those who are not heard hear both.
    #expect(rig.members[0].ear.level(MixRig.tones[3], frames: 30) >= present)
    #expect(rig.members[0].ear.level(MixRig.tones[0], frames: 30) <= absent)
  }

  @Test("a quiet microphone is not heard, and its level is nobody's speech")
  func noise() throws {
    let rig = try MixRig(2)
    rig.members[0].voice.amplitude = 0.0005
    rig.talk(0)
    rig.step(60)
    #expect(!rig.members[0].seat.isHeard && rig.members[1].ear.packets == 0 && rig.mixer.encodings == 0)
    #expect(rig.members[0].seat.takeLevel() == nil)
    rig.members[0].voice.amplitude = 0.3
    rig.step(20)
    let level = try #require(rig.members[0].seat.takeLevel())
    #expect((-17.0 ... -10.0).contains(level))
    #expect(rig.members[0].seat.takeLevel() == nil)
  }

  @Test("a member that leaves is heard no more, and the others still are")
  func left() throws {
    let rig = try MixRig(4)
    rig.talk(0, 1)
    rig.step(60)
    let ann = rig.members[0]
    rig.mixer.remove(ann.seat)
    rig.talk(1)
    let packets = ann.ear.packets
    rig.step(60)
    #expect(ann.ear.packets == packets && rig.mixer.seatCount == 3)
    #expect(rig.members[2].ear.level(MixRig.tones[0], frames: 40) <= absent)
    #expect(rig.members[2].ear.level(MixRig.tones[1], frames: 40) >= present)
    #expect(rig.members[2].ear.pauses.dropFirst().allSatisfy { $0 == 0 })
  }

  @Test("a member that hears nothing for a while hears on with the time that has passed")
  func deaf() throws {
    let rig = try MixRig(2)
    rig.talk(0)
    rig.step(50)
    let bob = rig.members[1]
    bob.seat.setListener(nil)
    rig.step(50)
    bob.seat.setListener(bob.ear)
    rig.step(50)
    #expect(bob.ear.pauses.filter { $0 > 0 }.last == 50 * RoomMixer.frame)
    #expect(bob.ear.sound.count == rig.frames * RoomMixer.frame)
    #expect(bob.ear.level(MixRig.tones[0], frames: 30) >= present)
  }

  @Test("after a thousand joins and leaves no seat is left, and nothing is due")
  func many() throws {
    let mixer = RoomMixer(RoomMixSettings())
    let voice = try MixVoice(400)
    let packet = voice.packet()
    var now: Nanoseconds = .milliseconds(1_000)
    for number in 0..<1_000 {
      let member = try MixMember(mixer.addSeat(), voice, source: UInt64(number))
      member.seat.setListener(member.ear)
      mixer.take(member.head(at: now), packet.span, from: member.seat, at: now)
      _ = mixer.run(at: now)
      now += MixRig.length
      #expect(mixer.seatCount == 1)
      mixer.remove(member.seat)
    }
    #expect(mixer.seatCount == 0 && mixer.due == nil)
  }

  @Test("what is no Opus is counted, and disturbs nobody")
  func garbage() throws {
    let rig = try MixRig(3)
    rig.talk(0)
    rig.step(60)
    let bob = rig.members[1]
    var generator = SystemRandomNumberGenerator()
    for count in [0, 1, 2, 3, 100, 1_275, 4_000, 30_000] {
      for _ in 0..<10 {
        let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        rig.take(payload, of: bob, skipped: .random(in: -3...200))
      }
      rig.step(1)
    }
    // No codec that a node knows, and one that the mix does not play.
    for codec in [0, SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1).packed] {
      var head = bob.head(at: rig.now)
      head.codec = codec
      let payload = [UInt8](repeating: 0xFF, count: 160)
      rig.mixer.take(head, payload.span, from: bob.seat, at: rig.now)
    }
    let counts = bob.seat.counts
    #expect(counts.unheard == 2 && counts.damaged > 0 && counts.packets >= 80)
    bob.seat.endSource()
    rig.step(60)
    let ear = rig.members[2].ear
    #expect(ear.level(MixRig.tones[0], frames: 20) >= present)
    #expect(ear.sound.count == rig.frames * RoomMixer.frame)
    #expect(ear.sound.allSatisfy { $0.magnitude < 1.5 })
  }

  @Test("another source of a member takes the place of the one before")
  func replaced() throws {
    let rig = try MixRig(2)
    rig.talk(0)
    rig.step(60)
    rig.talk()
    let (ann, bob) = (rig.members[0], rig.members[1])
    for number in 0..<60 {
      let head = SoundDownHead(
        source: 99, sequence: Int64(number), timestamp: 7_000_000 + Int64(number * RoomMixer.frame),
        arrival: rig.now, capture: 0, codec: SoundCodec.opus.packed, level: 255, marker: false,
        restarts: false)
      let packet = ann.voice.packet()
      rig.mixer.take(head, packet.span, from: ann.seat, at: rig.now)
      rig.run()
    }
    #expect(bob.ear.level(MixRig.tones[0], frames: 30) >= present)
    #expect(ann.seat.counts.packets == 120)
    #expect(ann.ear.packets == 0)
  }
}
