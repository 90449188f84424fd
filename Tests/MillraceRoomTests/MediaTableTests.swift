import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: slots, speech and offers of media") struct MediaTableTests {
  private let second: Nanoseconds = .milliseconds(1_000)

  /// A peer that has spoken from one time to another, in milliseconds; nil: never.
  private func candidate(_ name: String, _ spoken: ClosedRange<Int64>? = nil) -> SlotTable.Candidate {
    var speech = SpeechActivity()
    if let spoken {
      for time in stride(from: spoken.lowerBound, through: spoken.upperBound, by: 20) {
        speech.note(RTPAudioLevel(attenuation: 30, hasSpeech: true), at: .milliseconds(time))
      }
    }
    return SlotTable.Candidate(peer: named(name), speech: speech)
  }

  private func table(_ count: Int) -> SlotTable {
    var table = SlotTable()
    table.grow(to: count)
    return table
  }

  private func names(_ table: SlotTable) -> [String?] { table.peers.map { $0?.rawValue } }

  // MARK: Slots

  @Test("free slots go to those who came first, and only changes are told")
  func first() {
    var slots = table(2)
    var changed = slots.assign([candidate("ann")], at: 0)
    #expect(changed == [0] && names(slots) == ["ann", nil])
    changed = slots.assign([candidate("ann"), candidate("bob"), candidate("cay")], at: 0)
    #expect(changed == [1] && names(slots) == ["ann", "bob"] && slots.isShort)
    changed = slots.assign([candidate("ann"), candidate("bob"), candidate("cay")], at: 0)
    #expect(changed == [])
  }

  @Test("a peer keeps its slot while others come and go, and a slot that is freed goes to who waits")
  func kept() {
    var slots = table(3)
    _ = slots.assign([candidate("ann"), candidate("bob"), candidate("cay")], at: 0)
    var changed = slots.assign([candidate("ann"), candidate("cay")], at: 0)
    #expect(changed == [1] && names(slots) == ["ann", nil, "cay"])
    changed = slots.assign([candidate("dan"), candidate("ann"), candidate("cay")], at: 0)
    #expect(changed == [1] && names(slots) == ["ann", "dan", "cay"])
    changed = slots.assign([candidate("dan"), candidate("ann"), candidate("eve")], at: 0)
    #expect(changed == [2] && names(slots) == ["ann", "dan", "eve"] && !slots.isShort)
    changed = slots.assign([], at: 0)
    #expect(changed == [0, 1, 2])
  }

  @Test("with too few free slots those who spoke last get them")
  func latest() {
    var slots = table(2)
    let wanted = [
      candidate("ann"), candidate("bob", 0...1_000), candidate("cay"), candidate("dan", 0...3_000),
    ]
    _ = slots.assign(wanted, at: .milliseconds(9_000))
    #expect(names(slots) == ["dan", "bob"])
  }

  @Test("who speaks takes the slot of who was silent for longest")
  func replaced() {
    var slots = table(3)
    let quiet = [candidate("ann", 0...3_000), candidate("bob", 0...1_000), candidate("cay", 0...5_900)]
    _ = slots.assign(quiet, at: .milliseconds(6_000))
    let changed = slots.assign(quiet + [candidate("dan", 5_700...6_000)], at: .milliseconds(6_000))
    let place = slots.peers.firstIndex(of: named("dan"))
    #expect(changed.count == 1 && changed.first == place)
    #expect(Set(names(slots)) == ["ann", "dan", "cay"])
  }

  @Test("a cough takes no slot, nor does speech that is over, and who spoke lately keeps its own")
  func guarded() {
    let now: Nanoseconds = .milliseconds(6_000)
    for (speaker, holder) in [
      (candidate("bob", 5_900...6_000), candidate("ann", 0...1_000)),
      (candidate("bob", 4_000...5_000), candidate("ann", 0...1_000)),
      (candidate("bob", 5_000...6_000), candidate("ann", 0...4_100)),
    ] {
      var slots = table(1)
      _ = slots.assign([holder], at: now)
      let changed = slots.assign([holder, speaker], at: now)
      #expect(changed == [] && slots.isShort)
    }
  }

  @Test("a hundred peers in sixteen slots: no peer is in two, and none is in one that is not wanted")
  func many() {
    var random = SystemRandomNumberGenerator()
    var slots = table(16)
    for round in 0..<200 {
      let now = Nanoseconds(round) * second
      let wanted = (0..<100).filter { _ in Bool.random(using: &random) }.map { number in
        let start = Int64(round) * 1_000 - Int64.random(in: 0...9_000, using: &random)
        return candidate("p\(number)", start...start + 400)
      }
      let before = slots.peers
      let changed = slots.assign(wanted, at: now)
      let placed = slots.peers.compactMap { $0 }
      #expect(Set(placed).count == placed.count)
      #expect(Set(placed).isSubset(of: wanted.map(\.peer)))
      #expect(placed.count == min(16, wanted.count))
      #expect(changed == (0..<16).filter { before[$0] != slots.peers[$0] })
    }
  }

  @Test("a slot that was taken out of use is freed and stays so, until it is in use again")
  func closed() {
    var slots = table(2)
    let wanted = ["ann", "bob", "cay"].map { candidate($0) }
    _ = slots.assign(wanted, at: 0)
    slots.setOpen(false, 0)
    var changed = slots.assign(wanted, at: 0)
    #expect(changed == [0] && names(slots) == [nil, "bob"] && slots.isShort)
    slots.setOpen(true, 0)
    changed = slots.assign(wanted, at: 0)
    #expect(changed == [0] && names(slots) == ["ann", "bob"])
  }

  // MARK: Speech

  @Test("noise is no speech, and of a sender that marks speech only what is marked")
  func speech() {
    var speech = SpeechActivity()
    speech.note(RTPAudioLevel(attenuation: 50, hasSpeech: true), at: 0)
    speech.note(nil, at: 0)
    let none = speech.takeLevel()
    #expect(speech.lastAt == nil && none == nil)
    var unmarked = SpeechActivity()
    unmarked.note(RTPAudioLevel(attenuation: 20, hasSpeech: false), at: 5)
    #expect(unmarked.lastAt == 5)
    speech.note(RTPAudioLevel(attenuation: 10, hasSpeech: false), at: 7)
    #expect(speech.lastAt == nil)
    speech.note(RTPAudioLevel(attenuation: 40, hasSpeech: true), at: 8)
    speech.note(RTPAudioLevel(attenuation: 25, hasSpeech: true), at: 9)
    let levels = [speech.takeLevel(), speech.takeLevel()]
    #expect(levels == [-25, nil])
  }

  @Test("a turn goes on over short pauses, and begins anew after longer ones")
  func turns() {
    var speech = SpeechActivity()
    let loud = RTPAudioLevel(attenuation: 30, hasSpeech: true)
    speech.note(loud, at: 0)
    speech.note(loud, at: .milliseconds(290))
    #expect(speech.hasSpoken(for: .milliseconds(200), at: .milliseconds(300)))
    #expect(!speech.hasSpoken(for: .milliseconds(200), at: .milliseconds(600)))
    speech.note(loud, at: .milliseconds(700))
    #expect(speech.begunAt == .milliseconds(700))
    #expect(!speech.hasSpoken(for: .milliseconds(200), at: .milliseconds(700)))
  }

  // MARK: Offers

  private func offer(_ media: [(MediaKind, MediaDirection, [RTPCodec])]) -> SessionDescription {
    var description = SessionDescription(origin: SDPOrigin(sessionID: 1))
    for (index, (kind, direction, codecs)) in media.enumerated() {
      var medium = MediaDescription(kind, port: 9, .dtlsSAVPF, formats: [])
      medium.mid = "m\(index)"
      medium.direction = direction
      medium.codecs = codecs
      description.media.append(medium)
    }
    return description
  }

  private func made(_ offer: SessionDescription) -> [MediaSection] {
    OfferedMedia(offer, videoCodecs: [.h264, .vp8]).sections
  }

  @Test("what is only received becomes a slot, what is sent is received, and data is not wanted")
  func directions() {
    let sections = made(
      offer([
        (.audio, .sendReceive, [.opus]), (.audio, .receiveOnly, [.opus]), (.video, .sendOnly, [.vp8]),
        (.video, .receiveOnly, [.vp8]), (.application, .sendReceive, []), (.audio, .inactive, [.opus]),
      ]))
    #expect(sections.map(\.mid) == ["m0", "m1", "m2", "m3"])
    #expect(sections.map(\.direction) == [.receiveOnly, .sendOnly, .receiveOnly, .sendOnly])
  }

  @Test("seventeen slots and a third video are one too many")
  func limits() {
    let slots = made(offer((0..<17).map { _ in (.audio, .receiveOnly, [.opus]) }))
    #expect(slots.map(\.mid) == (0..<16).map { "m\($0)" })
    let videos = made(offer((0..<3).map { _ in (.video, .sendOnly, [.vp8]) }))
    #expect(videos.map(\.mid) == ["m0", "m1"])
    let sounds = made(offer((0..<2).map { _ in (.audio, .sendReceive, [.opus]) }))
    #expect(sounds.map(\.mid) == ["m0"])
  }

  @Test("a later offer adds what there is room for beside the media in use, and replaces others a few times")
  func beside() {
    func present(_ count: Int, _ direction: MediaDirection) -> [SessionMedium] {
      (0..<count).map { SessionMedium(mid: "m\($0)", kind: .video, direction: direction, sendCodec: nil) }
    }
    func mids(_ offered: SessionDescription, _ present: [SessionMedium]) -> [String?] {
      OfferedMedia(offered, beside: present, videoCodecs: [.vp8]).sections.map(\.mid)
    }
    let three = offer((0..<3).map { _ in (.video, .sendOnly, [.vp8]) })
    // What is there needs no section, and counts.
    #expect(mids(three, present(1, .receiveOnly)) == ["m1"])
    #expect(mids(three, present(2, .receiveOnly)) == [])
    // What was stopped makes room, and so does what is not sent any more.
    var stopped = three
    stopped.media[0].port = 0
    #expect(mids(stopped, present(2, .receiveOnly)) == ["m2"])
    stopped = three
    stopped.media[0].direction = .inactive
    #expect(mids(stopped, present(2, .receiveOnly)) == ["m2"])
    var many = offer((0..<8).map { _ in (.video, .sendOnly, [.vp8]) })
    for place in 0..<5 { many.media[place].port = 0 }
    #expect(mids(many, present(5, .receiveOnly)) == ["m5"])
    many.media[5].port = 0
    #expect(mids(many, present(6, .receiveOnly)) == [])
    let slots = offer((0..<20).map { _ in (.video, .receiveOnly, [.vp8]) })
    #expect(mids(slots, present(10, .sendOnly)) == (10..<16).map { "m\($0)" })
    // In a mix there is one sound, or another in its place.
    let sounds = offer((0..<2).map { _ in (.audio, .sendReceive, [.opus]) })
    let sound = SessionMedium(mid: "m0", kind: .audio, direction: .sendReceive, sendCodec: .opus)
    #expect(OfferedSound.sections(sounds, beside: [sound]).isEmpty)
    var other = sounds
    other.media[0].port = 0
    #expect(OfferedSound.sections(other, beside: [sound]).map(\.mid) == ["m1"])
    let all = (0..<5).map {
      SessionMedium(mid: "o\($0)", kind: .audio, direction: .sendReceive, sendCodec: .opus)
    }
    #expect(OfferedSound.sections(other, beside: all).isEmpty)
  }

  @Test("of several codecs of pictures the hub's first is taken, in the form that it can be sent on")
  func codecs() {
    var high = RTPCodec.h264
    high.parameters = FormatParameters("packetization-mode=1;profile-level-id=640c1f")
    var single = RTPCodec.h264
    single.parameters = FormatParameters("profile-level-id=42e01f")
    let cases: [([RTPCodec], String)] = [
      ([.vp8, .h264], "H264"), ([.vp8], "VP8"), ([high, .vp8], "VP8"), ([single, .vp8], "VP8"),
    ]
    for (codecs, name) in cases {
      let sections = made(offer([(.video, .receiveOnly, codecs)]))
      #expect(sections.first?.codecs.map(\.name) == [name])
    }
  }

  @Test("an offer without sound and video has nothing for a hub")
  func empty() {
    #expect(made(offer([(.application, .sendReceive, [])])).isEmpty)
    #expect(made(offer([])).isEmpty)
  }
}
