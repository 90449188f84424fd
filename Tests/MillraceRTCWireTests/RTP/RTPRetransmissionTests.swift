import Testing

@testable import MillraceRTCWire

@Suite("RTP: retransmission") struct RTPRetransmissionTests {
  /// What a generator wants at a time.
  private func due(_ generator: inout NackGenerator, _ now: Int64, room: Int = 300) -> [UInt16] {
    var bytes = [UInt16](repeating: 0, count: room)
    var span = bytes.mutableSpan
    let count = generator.due(at: now * millisecond, into: &span)
    return Array(bytes[0..<count])
  }

  private func note(_ generator: inout NackGenerator, _ sequences: [UInt16], at now: Int64) {
    for sequence in sequences { _ = generator.note(sequence: sequence, at: now * millisecond) }
  }

  @Test("a gap is requested after the reordering wait, then once per round trip until it is filled")
  func requests() {
    var generator = NackGenerator()
    generator.roundTrip = 50 * millisecond
    let verdicts = [65_533, 65_534, 1].map { generator.note(sequence: $0, at: 0) }
    #expect(verdicts == [.newest(missing: 0), .newest(missing: 0), .newest(missing: 2)])
    #expect(generator.deadline == 10 * millisecond)
    var seen = [due(&generator, 9), due(&generator, 10), due(&generator, 59), due(&generator, 60)]
    #expect(seen == [[], [65_535, 0], [], [65_535, 0]])
    #expect(generator.deadline == 110 * millisecond)
    let recovered = generator.note(sequence: 0, at: 70 * millisecond)
    let twice = generator.note(sequence: 0, at: 70 * millisecond)
    #expect(recovered == .recovered(requests: 2) && twice == .known)
    seen = [due(&generator, 110)]
    #expect(seen == [[65_535]])
    #expect(generator.outstanding == 1 && generator.requests == 5)
  }

  @Test("a packet that was only reordered is never requested")
  func reordered() {
    var generator = NackGenerator()
    note(&generator, [1, 3, 2, 4], at: 0)
    let seen = due(&generator, 1_000)
    #expect(seen.isEmpty)
    #expect(generator.deadline == nil && !generator.wantsKeyFrame)
  }

  @Test("after 200 ms a packet is given up and a key frame is wanted, each 500 ms until it comes")
  func age() {
    var generator = NackGenerator()
    generator.roundTrip = 90 * millisecond
    note(&generator, [1, 3], at: 0)
    let seen = [due(&generator, 10), due(&generator, 199), due(&generator, 200)]
    #expect(seen == [[2], [2], []])
    #expect(generator.givenUp == 1 && generator.outstanding == 0 && generator.wantsKeyFrame)
    #expect(generator.deadline == 200 * millisecond)
    let asked = [200, 300, 699, 700].map { generator.takeKeyFrameRequest(at: $0 * millisecond) }
    #expect(asked == [true, false, false, true])
    generator.noteKeyFrame(sequence: 4)
    #expect(!generator.wantsKeyFrame && generator.deadline == nil)
    note(&generator, [4, 6], at: 710)
    _ = due(&generator, 910)
    // Wanted once more at 910 ms, but 500 ms after the last request.
    let later = [910, 1_199, 1_200].map { generator.takeKeyFrameRequest(at: $0 * millisecond) }
    #expect(later == [false, false, true])
  }

  @Test("with a long round trip a packet is awaited for two of them, but no longer than a second")
  func longRoundTrip() {
    var generator = NackGenerator()
    generator.roundTrip = 300 * millisecond
    note(&generator, [1, 3], at: 0)
    let seen = [due(&generator, 10), due(&generator, 400), due(&generator, 599)]
    #expect(seen == [[2], [2], []])
    #expect(generator.outstanding == 1)
    generator.roundTrip = .max
    _ = due(&generator, 999)
    #expect(generator.outstanding == 1)
    _ = due(&generator, 1_000)
    #expect(generator.outstanding == 0)
  }

  @Test("a packet is requested ten times at most")
  func tries() {
    var generator = NackGenerator(reorderWait: 0)
    generator.roundTrip = 0
    note(&generator, [1, 3], at: 0)
    var count = 0
    for now in 0...199 as ClosedRange<Int64> { count += due(&generator, now).count }
    #expect(count == 10)
    _ = due(&generator, 200)
    #expect(generator.wantsKeyFrame == true)
  }

  @Test("200 missing packets are requested, with 201 a key frame is wanted instead")
  func outstanding() {
    var generator = NackGenerator()
    note(&generator, [0, 151], at: 0)
    note(&generator, [202], at: 1)
    #expect(generator.outstanding == 200)
    let seen = due(&generator, 20)
    #expect(seen == Array(1...150) + Array(152...201))
    note(&generator, [204], at: 21)
    #expect(generator.outstanding == 0 && generator.givenUp == 201 && generator.wantsKeyFrame)
    #expect(generator.deadline == 21 * millisecond)
  }

  @Test("what does not fit the destination is due again at once")
  func room() {
    var generator = NackGenerator()
    note(&generator, [0, 6], at: 0)
    let seen = [
      due(&generator, 10, room: 2), due(&generator, 10, room: 2), due(&generator, 10), due(&generator, 10),
    ]
    #expect(seen == [[1, 2], [3, 4], [5], []])
  }

  @Test("a key frame ends the wait for what is before it, not for what is after")
  func keyFrame() {
    var generator = NackGenerator()
    note(&generator, [0, 3, 5, 8], at: 0)
    generator.noteKeyFrame(sequence: 5)
    let seen = due(&generator, 10)
    #expect(seen == [6, 7])
    generator.reset()
    let first = generator.note(sequence: 40_000, at: 0)
    #expect(generator.outstanding == 0 && first == .newest(missing: 0))
  }

  @Test("any sequence of packets keeps the list in order and in bounds")
  func hostileSequences() {
    var generator = NackGenerator()
    var random = SeededRandom(seed: 6)
    var sequence: UInt16 = 0
    for step in 0..<20_000 as Range<Int64> {
      switch random.next() % 8 {
      case 0: sequence = UInt16(truncatingIfNeeded: random.next())
      case 1: sequence &-= UInt16(random.next() % 50)
      default: sequence &+= UInt16(random.next() % 4)
      }
      _ = generator.note(sequence: sequence, at: step * millisecond)
      let wanted = due(&generator, step)
      #expect(generator.outstanding <= NackGenerator.capacity && wanted.count <= NackGenerator.capacity)
      #expect(zip(wanted, wanted.dropFirst()).allSatisfy { $1 &- $0 < 0x8000 && $1 != $0 })
    }
  }

  // MARK: History

  private func retransmit(
    _ history: inout RetransmissionHistory, _ sequence: UInt16, at now: Int64, room: Int = 1_500
  ) -> (RetransmissionHistory.Answer, [UInt8]) {
    var bytes = [UInt8](repeating: 0, count: room)
    var span = bytes.mutableSpan
    let answer = history.retransmit(
      sequence, at: now * millisecond, roundTrip: 40 * millisecond, into: &span)
    if case .written(let count) = answer { return (answer, Array(bytes[0..<count])) }
    return (answer, [])
  }

  @Test("the latest packets are retransmitted as they were, the older ones are unknown")
  func history() {
    var history = RetransmissionHistory(slots: 4)
    for sequence in [65_533, 65_534, 65_535, 0, 1, 2] as [UInt16] {
      history.note(rtpPacket(sequence: sequence, payload: [UInt8(sequence & 0xFF)]).span)
    }
    for sequence in [65_535, 0, 1, 2] as [UInt16] {
      let (answer, bytes) = retransmit(&history, sequence, at: 0)
      #expect(answer == .written(13))
      #expect(bytes == rtpPacket(sequence: sequence, payload: [UInt8(sequence & 0xFF)]))
    }
    let (old, _) = retransmit(&history, 65_534, at: 0)
    let (future, _) = retransmit(&history, 3, at: 0)
    #expect(old == .unknown && future == .unknown)
    history.reset()
    let (forgotten, _) = retransmit(&history, 2, at: 100)
    #expect(forgotten == .unknown)
  }

  @Test("a packet is retransmitted once per round trip")
  func oncePerRoundTrip() {
    var history = RetransmissionHistory(slots: 8)
    history.note(rtpPacket(sequence: 5).span)
    let answers = [0, 39, 40, 79].map { retransmit(&history, 5, at: $0).0 }
    #expect(answers == [.written(15), .tooSoon, .written(15), .tooSoon])
  }

  @Test("a packet that is too long for a slot or a destination is not retransmitted")
  func lengths() {
    var history = RetransmissionHistory(slots: 8, slotBytes: 20)
    history.note(rtpPacket(sequence: 13, payload: [1]).span)
    let kept = history.note(rtpPacket(sequence: 5, payload: [UInt8](repeating: 1, count: 9)).span)
    let short = history.note([0x80, 1].span)
    let answers = [5, 13].map { retransmit(&history, $0, at: 0).0 }
    #expect(!kept && !short && answers == [.unknown, .unknown])
    let fits = history.note(rtpPacket(sequence: 5, payload: [UInt8](repeating: 1, count: 8)).span)
    let (tight, _) = retransmit(&history, 5, at: 0, room: 19)
    let (wide, _) = retransmit(&history, 5, at: 0, room: 20)
    #expect(fits && tight == .noRoom && wide == .written(20))
  }

  @Test("a retransmission stream has its own numbers and the original number before the payload")
  func rtx() {
    let stream = RTXStream(ssrc: 0x0A0B_0C0D, payloadType: 97, sequence: 65_535)
    var history = RetransmissionHistory(slots: 8, stream: stream)
    history.note(rtpPacket(sequence: 0x1234, timestamp: 0x01020304, payload: [9, 8]).span)
    let (_, first) = retransmit(&history, 0x1234, at: 0)
    #expect(first == [0x80, 97, 0xFF, 0xFF, 1, 2, 3, 4, 0x0A, 0x0B, 0x0C, 0x0D, 0x12, 0x34, 9, 8])
    let (_, second) = retransmit(&history, 0x1234, at: 50)
    #expect(second[2...3] == [0, 0])
    #expect(history.stream?.sequence == 1)
    let (small, _) = retransmit(&history, 0x1234, at: 100, room: 15)
    #expect(small == .noRoom && history.stream?.sequence == 1)
  }

  @Test("wrapped and unwrapped, a packet is the same but for its padding")
  func rtxRoundTrip() throws {
    var packet = rtpPacket(sequence: 77, timestamp: 5, ssrc: 7, payloadType: 96, payload: [])
    packet[0] = 0xB1
    packet[1] |= 0x80
    packet += [0, 0, 0, 9, 0xBE, 0xDE, 0, 1, 0x10, 0xAA, 0, 0, 1, 2, 3, 0, 0, 3]
    var (bytes, back) = ([UInt8](repeating: 0xEE, count: 60), [UInt8](repeating: 0xEE, count: 60))
    var stream = RTXStream(ssrc: 9, payloadType: 97, sequence: 3)
    var wrapped = bytes.mutableSpan
    let size = try stream.wrap(packet.span, into: &wrapped, at: 5)
    #expect(size == packet.count - 3 + 2)
    let retransmission = Array(bytes[5..<5 + size])
    let header = try RTPHeader(parsing: retransmission.span)
    #expect(header.ssrc == 9 && header.sequence == 3 && header.payloadType == 97 && header.marker)
    #expect(header.padding == 0 && header.contributorCount == 1 && header.extensionKind == .oneByte)
    var unwrapped = back.mutableSpan
    let target = try RTXStream.unwrap(
      retransmission.span, ssrc: 7, payloadType: 96, into: &unwrapped, at: 1)
    var wanted = Array(packet.dropLast(3))
    wanted[0] &= ~0x20
    #expect(Array(back[1..<1 + target]) == wanted)
    #expect(back[0] == 0xEE && back[1 + target] == 0xEE)
  }

  @Test("a retransmission without a number is refused")
  func rtxProbe() {
    var bytes = [UInt8](repeating: 0, count: 60)
    for payload in [[], [1]] as [[UInt8]] {
      let packet = rtpPacket(sequence: 1, payload: payload)
      var span = bytes.mutableSpan
      var problem: RTPProblem?
      do throws(RTPProblem) {
        _ = try RTXStream.unwrap(packet.span, ssrc: 1, payloadType: 96, into: &span)
      } catch { problem = error }
      #expect(problem == .retransmissionTooShort(payload: payload.count))
    }
  }

  @Test("random packets are wrapped and unwrapped, or refused")
  func hostileRetransmissions() {
    var random = SeededRandom(seed: 7)
    var bytes = [UInt8](repeating: 0, count: 64)
    for _ in 0..<20_000 {
      var packet = random.bytes(Int.random(in: 0...70, using: &random))
      if !packet.isEmpty { packet[0] = packet[0] & 0x3F | 0x80 }
      var stream = RTXStream(ssrc: 1, payloadType: 97, sequence: 1)
      var span = bytes.mutableSpan
      let offset = Int.random(in: 0...80, using: &random)
      _ = try? RTXStream.unwrap(packet.span, ssrc: 1, payloadType: 96, into: &span, at: offset)
      _ = try? stream.wrap(packet.span, into: &span, at: offset)
    }
  }
}
