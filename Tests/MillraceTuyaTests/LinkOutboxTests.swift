import MillraceCore
import Testing

@testable import MillraceTuya

private let ms: Nanoseconds = 1_000_000

/// A packet with this number of a session's channel.
private func packet(_ id: UInt16) -> TuyaPacket {
  TuyaPacket(.audio, TuyaAttributes(), .media(TuyaMediaHead(id, .streaming), [0]))
}

/// A picture on a channel.
private func picture(_ id: UInt16) -> TuyaBulk {
  TuyaBulk(
    kind: .image(TuyaImageParameters(format: 1, width: 1, height: 1)), dataID: id, time: 0, userData: nil,
    dialect: .v21)
}

/// A file on a channel.
private func file(_ id: UInt16) -> TuyaBulk {
  TuyaBulk(
    kind: .file(TuyaFileParameters(format: 4, name: "a.json")), dataID: id, time: 0, userData: nil,
    dialect: .v21)
}

private func outbox(parts: Int = 0, rate: Int = 0, unsent: Int = 1_000) -> TuyaOutbox {
  var target = TuyaTarget(TuyaAccess())
  target.pictureParts = parts
  target.pictureRate = rate
  target.unsent = unsent
  return TuyaOutbox(target)
}

/// A step in short words: channel, flag and size.
private func word(_ step: TuyaOutbox.Step) -> String {
  switch step {
  case .send(let item):
    guard case .media(let head, let bytes) = item.packet.content else {
      return "\(item.packet.type.rawValue)"
    }
    return "\(head.dataID) \(head.flag) \(bytes.count)" + (item.ends.map { " ends \($0)" } ?? "")
  case .read(_, let offset, let count, _, _): return "read \(offset) \(count)"
  case .wait(let time): return "wait \(time / 1_000)"
  case .full: return "full"
  case .idle: return "idle"
  }
}

/// Everything that is sent now.
private func drain(_ outbox: inout TuyaOutbox, at now: Nanoseconds = 0, waiting: Int = 0) -> [String] {
  var words: [String] = []
  while words.last != "idle", words.last != "full", words.last?.hasPrefix("wait") != true {
    words.append(word(outbox.next(at: now, waiting: waiting)))
  }
  return words
}

@Suite("Tuya: the order of what is sent") struct LinkOutboxTests {
  @Test("sound goes before a picture that came earlier")
  func soundFirst() {
    var outbox = outbox()
    check(outbox.add(picture(5), .bytes([1, 2, 3]), of: 1, event: "e", call: 7))
    outbox.add(packet(1), bytes: 1, of: 1)
    check(drain(&outbox), ["1 streaming 1", "5 onlyOne 3 ends 7", "idle"])
  }

  @Test("sound fits between the parts of a picture")
  func between() {
    var outbox = outbox(parts: 2)
    check(outbox.add(picture(5), .bytes([1, 2, 3, 4, 5]), of: 1, event: "e", call: 7))
    check(word(outbox.next(at: 0, waiting: 0)), "5 start 2")
    outbox.add(packet(1), bytes: 1, of: 1)
    check(
      drain(&outbox), ["1 streaming 1", "5 streaming 2", "5 end 1 ends 7", "idle"])
  }

  @Test("only the first part of a picture carries its parameters")
  func parameters() {
    var outbox = outbox(parts: 2)
    check(outbox.add(picture(5), .bytes([1, 2, 3, 4]), of: 1, event: "e", call: 7))
    var counts: [Int] = []
    while case .send(let item) = outbox.next(at: 0, waiting: 0) {
      counts.append(item.packet.attributes.entries.count)
    }
    #expect(counts == [1, 0])
  }

  @Test("a picture waits while much waits in the socket, and sound does not")
  func full() {
    var outbox = outbox(unsent: 1_000)
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: nil, call: 7))
    check(drain(&outbox, waiting: 1_001), ["full"])
    outbox.add(packet(1), bytes: 1, of: 1)
    check(drain(&outbox, waiting: 1_001), ["1 streaming 1", "full"])
    check(drain(&outbox, waiting: 1_000), ["5 onlyOne 1 ends 7", "idle"])
  }

  @Test("parts go out at the rate, and late by at most the slack they catch up")
  func rate() {
    // 1,000 bytes at 1,000 kbit/s take 8 ms.
    var outbox = outbox(parts: 1_000, rate: 1_000)
    check(outbox.add(picture(5), .bytes([UInt8](repeating: 0, count: 4_000)), of: 1, event: nil, call: 7))
    check(drain(&outbox, at: 100 * ms), ["5 start 1000", "wait 106000"])
    check(drain(&outbox, at: 106 * ms), ["5 streaming 1000", "wait 114000"])
    // 30 ms late: the next one still has to wait.
    check(drain(&outbox, at: 144 * ms), ["5 streaming 1000", "wait 150000"])
    check(drain(&outbox, at: 150 * ms), ["5 end 1000 ends 7", "idle"])
  }

  @Test("the end of an event waits for its pictures, and what follows it waits too, but not sound before it")
  func held() {
    var outbox = outbox()
    outbox.add(packet(1), bytes: 1, of: 1)
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: "a", call: 7))
    outbox.add(packet(2), bytes: 1, of: 1, endsDataOf: "a")
    outbox.add(packet(3), bytes: 1, of: 1)
    check(outbox.add(picture(5), .bytes([2, 2]), of: 1, event: "b", call: 8))
    outbox.add(packet(4), bytes: 1, of: 1, endsDataOf: "b")
    outbox.add(packet(9), bytes: 1, of: 2)
    check(
      drain(&outbox),
      [
        "1 streaming 1", "9 streaming 1", "5 onlyOne 1 ends 7", "2 streaming 1", "3 streaming 1",
        "5 onlyOne 2 ends 8", "4 streaming 1", "idle",
      ])
  }

  @Test("what waits for pictures counts as held of its session, and of no other")
  func backlog() {
    var outbox = outbox()
    outbox.add(packet(1), bytes: 10, of: 1)
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: "a", call: 7))
    outbox.add(packet(2), bytes: 100, of: 1, endsDataOf: "a")
    #expect(outbox.urgentBytes == 10)
    #expect(outbox.held(of: 1) == 100)
    #expect(outbox.held(of: 2) == 0)
    _ = drain(&outbox)
    #expect(outbox.urgentBytes == 0 && outbox.held(of: 1) == 0)
  }

  @Test("an event that is broken off takes its pictures with it, and ends the one that was begun")
  func breaks() {
    var outbox = outbox(parts: 1)
    check(outbox.add(picture(5), .bytes([1, 2, 3]), of: 1, event: "a", call: 7))
    check(outbox.add(picture(7), .bytes([1, 2, 3]), of: 1, event: "a", call: 8))
    check(word(outbox.next(at: 0, waiting: 0)), "5 start 1")
    check(outbox.breakOff("a", of: 1, by: packet(2)), [7, 8])
    check(drain(&outbox), ["5 end 0", "2 streaming 1", "idle"])
  }

  @Test("an event that is broken off is not ended; the break comes before the event behind it")
  func breaksEnd() {
    var outbox = outbox()
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: "a", call: 7))
    outbox.add(packet(2), bytes: 1, of: 1, endsDataOf: "a")
    outbox.add(
      TuyaPacket(.event, TuyaAttributes(), .event(.end, [])), bytes: 0, of: 1, endsDataOf: "a")
    outbox.add(packet(3), bytes: 1, of: 1)
    check(outbox.breakOff("a", of: 1, by: packet(4)), [7])
    check(drain(&outbox), ["4 streaming 1", "3 streaming 1", "idle"])
  }

  @Test("an event behind one that waits for its pictures is broken off at its place")
  func breaksWaiting() {
    var outbox = outbox()
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: "a", call: 7))
    outbox.add(packet(2), bytes: 1, of: 1, endsDataOf: "a")
    check(outbox.add(picture(5), .bytes([2]), of: 1, event: "b", call: 8))
    outbox.add(packet(3), bytes: 1, of: 1, endsDataOf: "b")
    check(outbox.breakOff("b", of: 1, by: packet(4)), [8])
    check(drain(&outbox), ["5 onlyOne 1 ends 7", "2 streaming 1", "4 streaming 1", "idle"])
  }

  @Test("a session that ends ends the picture that it has begun on a shared channel, and none of its own")
  func removeBegun() {
    for (id, words) in [(105, ["105 end 0", "idle"]), (5, ["idle"])] as [(UInt16, [String])] {
      var outbox = outbox(parts: 1)
      check(outbox.add(picture(id), .bytes([1, 2, 3]), of: 1, event: "a", call: 7))
      check(word(outbox.next(at: 0, waiting: 0)), "\(id) start 1")
      outbox.remove(1)
      check(drain(&outbox), words)
    }
  }

  @Test("of a session that could not be created nothing is sent, and of the others everything")
  func discard() {
    var outbox = outbox()
    outbox.add(packet(1), bytes: 10, of: 1)
    outbox.add(packet(2), bytes: 100, of: 2)
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: nil, call: 7))
    outbox.discard(1)
    #expect(outbox.urgentBytes == 100)
    check(drain(&outbox), ["2 streaming 1", "idle"])
  }

  @Test("a session that ends takes its pictures with it, and no other's")
  func remove() {
    var outbox = outbox()
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: nil, call: 7))
    check(outbox.add(picture(11), .bytes([1]), of: 2, event: nil, call: 8))
    outbox.remove(1)
    check(drain(&outbox), ["11 onlyOne 1 ends 8", "idle"])
  }

  @Test("a file is read as it is sent, and other pictures continue meanwhile")
  func files() throws {
    var outbox = outbox(parts: 4)
    check(outbox.add(file(7), .file(total: 6), of: 1, event: nil, call: 3))
    check(outbox.add(picture(5), .bytes([1]), of: 1, event: nil, call: 4))
    guard case .read(let job, 0, 6, 1, 3) = outbox.next(at: 0, waiting: 0) else {
      Issue.record("nothing is read")
      return
    }
    check(drain(&outbox), ["5 onlyOne 1 ends 4", "idle"])
    outbox.supply([1, 2, 3, 4, 5, 6], to: job)
    check(drain(&outbox), ["7 start 4", "7 end 2 ends 3", "idle"])
  }

  @Test("a file that cannot be read to its end is ended, and its call fails")
  func shrinks() {
    var outbox = outbox(parts: 4)
    let total = TuyaOutbox.chunk + 4
    check(outbox.add(file(7), .file(total: total), of: 1, event: "a", call: 3))
    outbox.add(packet(2), bytes: 1, of: 1, endsDataOf: "a")
    guard case .read(let job, 0, TuyaOutbox.chunk, _, _) = outbox.next(at: 0, waiting: 0) else {
      Issue.record("nothing is read")
      return
    }
    outbox.supply([UInt8](repeating: 1, count: TuyaOutbox.chunk), to: job)
    for _ in 0..<TuyaOutbox.chunk / 4 { _ = outbox.next(at: 0, waiting: 0) }
    check(word(outbox.next(at: 0, waiting: 0)), "read \(TuyaOutbox.chunk) 4")
    let failed = outbox.fail(job)
    #expect(failed?.session == 1)
    #expect(failed?.call == 3)
    check(drain(&outbox), ["7 end 0", "2 streaming 1", "idle"])
  }

  @Test("a picture of a video that has not been sent gives way to the next")
  func video() {
    var outbox = outbox()
    func frame(_ isFirst: Bool) -> TuyaBulk {
      TuyaBulk(
        kind: .video(TuyaVideoParameters(codec: 3, width: 1, height: 1, fps: 0), isFirst: isFirst), dataID: 9,
        time: 0, userData: nil, dialect: .v21)
    }
    check(outbox.replace(waitingOn: 9, of: 1, event: "a", by: [1], call: 1), nil)
    check(outbox.add(frame(true), .bytes([1]), of: 1, event: "a", call: 1))
    check(outbox.replace(waitingOn: 9, of: 1, event: "b", by: [1, 2], call: 2), nil)
    check(outbox.replace(waitingOn: 9, of: 1, event: "a", by: [1, 2], call: 2), 1)
    check(drain(&outbox), ["9 start 2 ends 2", "idle"])
    check(outbox.add(frame(false), .bytes([1]), of: 1, event: nil, call: 3))
    check(drain(&outbox), ["9 streaming 1 ends 3", "idle"])
  }

  @Test("no more pictures are taken than memory allows")
  func limit() {
    var outbox = outbox()
    let half = [UInt8](repeating: 0, count: TuyaOutbox.mostWaiting / 2)
    check(outbox.add(picture(5), .bytes(half), of: 1, event: nil, call: 1))
    check(outbox.add(picture(5), .bytes(half), of: 1, event: nil, call: 2))
    check(!outbox.add(picture(5), .bytes([1]), of: 1, event: nil, call: 3))
  }
}
