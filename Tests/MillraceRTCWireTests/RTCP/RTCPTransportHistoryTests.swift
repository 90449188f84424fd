import Testing

@testable import MillraceRTCWire

/// Both sides of transport-wide feedback: recorder and history.
@Suite("RTCP: transport-wide recorder and history") struct RTCPTransportHistoryTests {
  /// The datagrams that a recorder writes now.
  private func write(
    _ recorder: inout TransportFeedbackRecorder, at now: Int64, room: Int = 1_200
  ) throws -> [[UInt8]] {
    var (datagrams, isOpen): ([[UInt8]], Bool) = ([], true)
    while isOpen {
      let bytes = try rtcpBytes(room: room) {
        isOpen = try recorder.write(media: 2, into: &$0, at: now * millisecond)
      }
      if !bytes.isEmpty { datagrams.append(bytes) }
    }
    return datagrams
  }

  private func note(_ recorder: inout TransportFeedbackRecorder, _ sequences: [UInt16], at now: Int64) {
    for sequence in sequences { recorder.note(sequence: sequence, at: now * millisecond) }
  }

  private func join(
    _ history: inout TransportFeedbackHistory, _ bytes: [UInt8]
  ) throws -> [PacketResult] {
    var reader = RTCPReader(bytes.span)
    var results: [PacketResult] = []
    while let packet = try reader.next() {
      guard case .transportFeedback(let feedback) = packet else { continue }
      history.join(feedback) { results.append($0) }
    }
    return results
  }

  // MARK: Recorder

  @Test("feedback is due 100 ms after the first packet, with a new number each time")
  func due() throws {
    var recorder = TransportFeedbackRecorder(sender: 1)
    let none = try write(&recorder, at: 0)
    #expect(none == [] && recorder.deadline == nil)
    note(&recorder, [65_534, 1], at: 640)
    #expect(recorder.deadline == 740 * millisecond)
    let early = (recorder.isDue(at: 739 * millisecond), recorder.isDue(at: 740 * millisecond))
    #expect(early == (false, true))
    let first = try write(&recorder, at: 740).flatMap(rtcpWords)
    #expect(first == ["TWCC 65534 10 0: 0 - - 0"])
    #expect(recorder.deadline == nil)
    note(&recorder, [3], at: 745)
    let second = try write(&recorder, at: 845).flatMap(rtcpWords)
    // Packet 2 is lost. 745 ms are 11 times 64 ms, and 41 ms.
    #expect(second == ["TWCC 2 11 1: - 164"])
  }

  @Test("a packet that was reported as lost is reported when it comes, a duplicate is not")
  func late() throws {
    var recorder = TransportFeedbackRecorder(sender: 1)
    note(&recorder, [1, 2, 4], at: 0)
    _ = try write(&recorder, at: 100)
    note(&recorder, [4], at: 101)
    #expect(recorder.deadline == nil)
    note(&recorder, [3], at: 110)
    let words = try write(&recorder, at: 210).flatMap(rtcpWords)
    #expect(words == ["TWCC 3 1 1: 184 -440"])
  }

  @Test("packets are kept up to the capacity, later ones replace the oldest")
  func capacity() throws {
    var recorder = TransportFeedbackRecorder(sender: 1, capacity: 16)
    note(&recorder, Array(100..<130), at: 0)
    note(&recorder, [113], at: 0)
    let words = try write(&recorder, at: 100).flatMap(rtcpWords)
    #expect(words == ["TWCC 114 0 0:" + String(repeating: " 0", count: 16)])
    note(&recorder, [20_000], at: 200)
    let jump = try write(&recorder, at: 300).flatMap(rtcpWords)
    #expect(jump == ["TWCC 19985 3 1:" + String(repeating: " -", count: 15) + " 32"])
    recorder.reset()
    note(&recorder, [5], at: 400)
    let fresh = try write(&recorder, at: 500).flatMap(rtcpWords)
    #expect(fresh == ["TWCC 5 6 2: 64"])
  }

  @Test("what does not fit one datagram is written into the next")
  func split() throws {
    var recorder = TransportFeedbackRecorder(sender: 1)
    for sequence in 0..<200 as Range<UInt16> {
      recorder.note(sequence: sequence, at: Int64(sequence) * millisecond)
    }
    let datagrams = try write(&recorder, at: 200, room: 100)
    let sequences = datagrams.flatMap { rtcpStatuses($0).map(\.sequence) }
    #expect(datagrams.count > 2 && sequences == Array(0..<200))
    #expect(datagrams.map { $0[19] } == (0..<UInt8(datagrams.count)).map { $0 })
  }

  @Test("a recorder takes any sequence numbers and writes feedback that is read")
  func hostileSequences() throws {
    var (random, read) = (SeededRandom(seed: 10), 0)
    var recorder = TransportFeedbackRecorder(sender: 1, capacity: 100)
    for step in 0..<20_000 as Range<Int64> {
      let sequence =
        random.next() % 8 == 0 ? UInt16(truncatingIfNeeded: random.next()) : UInt16(truncatingIfNeeded: step)
      recorder.note(sequence: sequence, at: step * millisecond)
      guard recorder.isDue(at: step * millisecond) else { continue }
      for datagram in try write(&recorder, at: step, room: 60) {
        #expect(!rtcpStatuses(datagram).isEmpty)
        read += 1
      }
    }
    #expect(read > 150)
  }

  // MARK: History

  @Test("feedback gives size, send time and arrival or loss of each packet, once")
  func results() throws {
    var history = TransportFeedbackHistory()
    var recorder = TransportFeedbackRecorder(sender: 1)
    for index in 0..<4 as Range<UInt16> {
      history.note(sequence: 65_534 &+ index, bytes: 100 + Int(index), at: Int64(index) * millisecond)
    }
    #expect(history.bytesInFlight == 406)
    note(&recorder, [65_534, 65_535, 1], at: 64_000)
    let datagram = try #require(try write(&recorder, at: 64_100).first)
    let results = try join(&history, datagram)
    #expect(
      results == [
        .init(number: 65_534, bytes: 100, sent: 0, arrival: 64_000 * millisecond),
        .init(number: 65_535, bytes: 101, sent: millisecond, arrival: 64_000 * millisecond),
        .init(number: 65_536, bytes: 102, sent: 2 * millisecond, arrival: nil),
        .init(number: 65_537, bytes: 103, sent: 3 * millisecond, arrival: 64_000 * millisecond),
      ])
    #expect(history.bytesInFlight == 0)
    let again = try join(&history, datagram)
    #expect(again == [])
    note(&recorder, [0], at: 64_200)
    let late = try join(&history, try #require(try write(&recorder, at: 64_300).first))
    #expect(
      late == [.init(number: 65_536, bytes: 102, sent: 2 * millisecond, arrival: 64_200 * millisecond)])
  }

  @Test("feedback about packets that were not sent, or are forgotten, gives nothing")
  func strangers() throws {
    var history = TransportFeedbackHistory(capacity: 16)
    var recorder = TransportFeedbackRecorder(sender: 1)
    note(&recorder, Array(0..<60), at: 0)
    let datagram = try #require(try write(&recorder, at: 100).first)
    let none = try join(&history, datagram)
    #expect(none == [])
    for sequence in 10..<40 as Range<UInt16> { history.note(sequence: sequence, bytes: 1, at: 0) }
    #expect(history.bytesInFlight == 16)
    let results = try join(&history, datagram)
    #expect(results.map(\.number) == Array(24..<40))
    history.reset()
    #expect(history.bytesInFlight == 0)
  }

  @Test("arrivals are on one line when the reference time wraps and feedback is reordered")
  func referenceWrap() throws {
    var history = TransportFeedbackHistory()
    let wrap = RTCPTransportFeedback.referenceUnit << 24
    let arrivals = [wrap - 200 * millisecond, wrap + 100 * millisecond, wrap - 100 * millisecond]
    var seen: [Int64] = []
    for (index, arrival) in arrivals.enumerated() {
      history.note(sequence: UInt16(index), bytes: 1, at: 0)
      let bytes = try rtcpBytes {
        _ = try $0.transportFeedback(
          sender: 1, media: 2, base: UInt16(index), number: UInt8(index), arrivals: [arrival].span)
      }
      seen += try join(&history, bytes).compactMap(\.arrival)
    }
    #expect(seen == arrivals)
  }

  @Test("a peer whose reference time wraps with every feedback does not end the program")
  func referenceWrapsForEver() throws {
    var history = TransportFeedbackHistory()
    let step = RTCPTransportFeedback.referenceUnit * ((1 << 23) - 1)
    for number in 0..<17_500 {
      history.note(sequence: UInt16(truncatingIfNeeded: number), bytes: 1, at: 0)
      let arrival = step &* Int64(number) & (RTCPTransportFeedback.referenceUnit << 24 - 1)
      let bytes = try rtcpBytes {
        _ = try $0.transportFeedback(
          sender: 1, media: 2, base: UInt16(truncatingIfNeeded: number),
          number: UInt8(truncatingIfNeeded: number), arrivals: [arrival].span)
      }
      #expect(try join(&history, bytes).count == 1)
    }
  }

  @Test("lost feedback is counted by its numbers, reordered feedback is not")
  func lostFeedback() throws {
    var history = TransportFeedbackHistory()
    history.note(sequence: 1, bytes: 1, at: 0)
    for number in [254, 255, 2, 1, 3] as [UInt8] {
      let bytes = try rtcpBytes {
        _ = try $0.transportFeedback(sender: 1, media: 2, base: 1, number: number, arrivals: [0].span)
      }
      _ = try join(&history, bytes)
    }
    #expect(history.lostFeedback == 2)
  }

  @Test("any feedback that is read is joined, and never more is in flight than was sent")
  func hostileFeedback() throws {
    var (random, history) = (SeededRandom(seed: 11), 0)
    var sender = TransportFeedbackHistory(capacity: 64)
    for step in 0..<20_000 as Range<Int64> {
      sender.note(sequence: UInt16(truncatingIfNeeded: step), bytes: 10, at: step)
      var content = random.bytes(4 * Int.random(in: 2...8, using: &random))
      content.replaceSubrange(
        0..<4, with: [UInt8(step >> 8 & 255), UInt8(step & 255), 0, UInt8(random.next() % 40)])
      let bytes = [0x8F, 205, 0, UInt8(content.count / 4 + 2), 0, 0, 0, 1, 0, 0, 0, 2] + content
      history += (try? join(&sender, bytes))?.count ?? 0
      #expect((0...640).contains(sender.bytesInFlight))
    }
    #expect(history > 100)
  }
}
