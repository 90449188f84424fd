import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: files") struct HubFileTests {
  private static let overhead = RoomFileTable.overhead

  private func rig(_ change: (inout RoomHubSettings) -> Void = { _ in }) -> HubRig {
    var settings = RoomHubSettings()
    change(&settings)
    let rig = HubRig(settings)
    rig.member(1, "ann")
    rig.member(2, "bob")
    rig.clear()
    return rig
  }

  private func ticket(_ rig: HubRig, _ bytes: Int, of connection: UInt64 = 1) throws -> RoomFileTicket {
    let answer = try #require(rig.ask(connection, .file(RoomFile("a.txt", bytes: bytes))))
    return try answer.payload(RoomFileTicket.self)
  }

  private func begin(
    _ rig: HubRig, _ ticket: RoomFileTicket, _ length: Int?
  ) -> Result<RoomUpload, RoomFileRefusal> {
    var result = Result<RoomUpload, RoomFileRefusal>.failure(.over)
    let time = rig.time
    rig.change { hub in
      do throws(RoomFileRefusal) {
        result = .success(try hub.beginUpload(ticket.ticket, length: length, from: "a", at: time))
      } catch { result = .failure(error) }
    }
    return result
  }

  /// The status with which an upload is refused; nil: it is taken.
  private func status(_ rig: HubRig, _ ticket: RoomFileTicket, _ length: Int?) -> Int? {
    if case .failure(let refusal) = begin(rig, ticket, length) { refusal.status } else { nil }
  }

  private func take(_ rig: HubRig, _ bytes: [UInt8], _ file: RoomName) -> Bool {
    var isTaken = false
    rig.change { isTaken = $0.takeUpload(bytes, of: file) }
    return isTaken
  }

  private func end(_ rig: HubRig, _ file: RoomName) -> Bool {
    var isShared = false
    let time = rig.time
    rig.change { isShared = $0.endUpload(of: file, at: time) }
    return isShared
  }

  /// Shares a file of so many bytes.
  private func share(_ rig: HubRig, _ bytes: Int, of connection: UInt64 = 1) throws -> RoomName {
    let ticket = try ticket(rig, bytes, of: connection)
    #expect(status(rig, ticket, bytes) == nil)
    let isTaken = take(rig, [UInt8](repeating: 7, count: bytes), ticket.id)
    let isShared = end(rig, ticket.id)
    #expect(isTaken && isShared)
    return ticket.id
  }

  @Test("a file is announced, arrives in parts, and then the others of the room learn of it")
  func shared() throws {
    let rig = rig()
    rig.member(3, "cem", in: "other")
    rig.clear()
    let file = RoomFile("../<b>.png", bytes: 5, type: "image/png")
    let ticket = try #require(rig.ask(1, .file(file))).payload(RoomFileTicket.self)
    #expect(ticket.path == "/files/\(ticket.id)" && ticket.ticket != ticket.id.rawValue)
    #expect(rig.hub.counts.files == 1 && rig.hub.counts.fileBytes == 0)
    #expect(begin(rig, ticket, 5) == .success(RoomUpload(file: ticket.id, bytes: 5)))
    #expect(rig.hub.counts.fileBytes == 5 + Self.overhead)
    let parts = [take(rig, [1, 2], ticket.id), take(rig, [3, 4, 5], ticket.id)]
    #expect(parts == [true, true])
    #expect(rig.hub.file(ticket.id) == nil && rig.hub.piece(0, of: ticket.id) == nil)
    #expect(rig.seen(2) == [])
    let isShared = end(rig, ticket.id)
    #expect(isShared)
    #expect(rig.seen(2) == [.file(file, id: ticket.id, from: named("peer1"))])
    #expect(rig.seen(1) == [] && rig.seen(3) == [])
    #expect(rig.hub.file(ticket.id) == file)
    #expect(rig.hub.piece(0, of: ticket.id) == [1, 2, 3, 4, 5])
    #expect(rig.hub.piece(1, of: ticket.id) == [])
    let isSharedAgain = end(rig, ticket.id)
    #expect(!isSharedAgain)
  }

  @Test("only hosts with the right to publish share, and only within a room")
  func rights() {
    let rig = HubRig(HubRig.keyed)
    rig.connect(1, 2)
    rig.logIn(1, "ann", token: HubRig.token("ann", rights: [.kick]))
    #expect(rig.refusal(1, .file(RoomFile("a", bytes: 1))) == .notInRoom)
    rig.join(1, "lobby")
    #expect(rig.refusal(1, .file(RoomFile("a", bytes: 1))) == .forbidden)
    rig.logIn(2, "bob", token: HubRig.token("bob"))
    rig.join(2, "lobby", .viewer)
    #expect(rig.refusal(2, .file(RoomFile("a", bytes: 1))) == .forbidden)
    #expect(rig.isDone(2, .role(.host)) && rig.isDone(2, .file(RoomFile("a", bytes: 1))))
  }

  @Test("a file has at most 10,000,000 bytes, and may have none")
  func size() throws {
    let rig = rig()
    guard case .failure(let error)? = rig.ask(1, .file(RoomFile("a", bytes: 10_000_001)))?.result else {
      Issue.record("it is taken")
      return
    }
    #expect(
      error == RoomError(.badPayload, "\"payload.bytes\" must be an integer from 0 to 10000000"))
    #expect(rig.isDone(1, .file(RoomFile("a", bytes: 10_000_000))))
    let empty = try share(rig, 0)
    #expect(rig.hub.file(empty)?.bytes == 0 && rig.hub.piece(0, of: empty) == [])
  }

  @Test(
    "files from one address have a limit of their own, in whatever rooms they are, and others have theirs"
  )
  func address() throws {
    let rig = rig { $0.files.address = 3 * (1_000 + Self.overhead) }
    rig.member(3, "cem", in: "other")
    func status(_ connection: UInt64, from address: String) throws -> Int? {
      let ticket = try ticket(rig, 1_000, of: connection)
      var status: Int?
      let time = rig.time
      rig.change { hub in
        do throws(RoomFileRefusal) {
          _ = try hub.beginUpload(ticket.ticket, length: 1_000, from: address, at: time)
        } catch { status = error.status }
      }
      return status
    }
    #expect(try status(1, from: "192.0.2.1") == nil)
    #expect(try status(1, from: "192.0.2.1") == nil)
    #expect(try status(3, from: "192.0.2.1") == nil)
    #expect(try status(2, from: "192.0.2.1") == 507)
    #expect(try status(2, from: "192.0.2.2") == nil)
    // The room and its files go, and make room.
    #expect(rig.isDone(3, .leave))
    #expect(try status(2, from: "192.0.2.1") == nil)
    #expect(try status(2, from: "192.0.2.1") == 507)
  }

  @Test("transfers are counted by their address, which is forgotten with its last one")
  func transfers() {
    var transfers = RoomFileTransfers(3, ofAddress: 2)
    var begun = ["a", "a", "a", "b", "b"].map { transfers.begin($0) }
    #expect(begun == [true, true, false, true, false] && transfers.count == 3)
    transfers.end("a")
    transfers.end("none")
    begun = ["b", "b", "a"].map { transfers.begin($0) }
    #expect(begun == [true, false, false] && transfers.count == 3)
    for address in ["a", "b", "b", "b"] { transfers.end(address) }
    #expect(transfers.count == 0)
    begun = ["a", "a", "b"].map { transfers.begin($0) }
    #expect(begun == [true, true, true])
  }

  @Test("a ticket lets in once, for 60 s, and only an upload of its size")
  func tickets() throws {
    let rig = rig()
    let used = try ticket(rig, 3)
    #expect(status(rig, used, 3) == nil)
    #expect(status(rig, used, 3) == 403)
    let late = try ticket(rig, 3)
    rig.wait(milliseconds: 59_999)
    let inTime = try ticket(rig, 3)
    rig.wait(milliseconds: 1)
    #expect(status(rig, late, 3) == 403)
    #expect(status(rig, inTime, 3) == nil)
    for (length, expected) in [(nil, 411), (4, 413), (2, 400), (0, 400)] as [(Int?, Int)] {
      let wrong = try ticket(rig, 3)
      #expect(status(rig, wrong, length) == expected)
      #expect(status(rig, wrong, 3) == 403, "it was used")
    }
    for text in ["", "../x", "none", String(repeating: "x", count: 100_000)] {
      #expect(status(rig, RoomFileTicket(named("x"), ticket: text, path: ""), 3) == 403)
    }
    #expect(rig.hub.counts.files == 2 && rig.hub.counts.fileBytes == 2 * (3 + Self.overhead))
  }

  @Test("more bytes than were said are not taken, and the file is given up")
  func tooMuch() throws {
    let rig = rig()
    let ticket = try ticket(rig, 3)
    #expect(status(rig, ticket, 3) == nil)
    let parts = [take(rig, [1, 2], ticket.id), take(rig, [3, 4], ticket.id), take(rig, [3], ticket.id)]
    #expect(parts == [true, false, false])
    #expect(rig.hub.counts.files == 0 && rig.hub.counts.fileBytes == 0)
    let short = try self.ticket(rig, 3)
    #expect(status(rig, short, 3) == nil)
    let isShared = end(rig, short.id)
    #expect(!isShared && rig.hub.counts.files == 0)
    #expect(rig.seen(2) == [])
  }

  @Test("a few files of a member may be on their way at once, and no more")
  func unfinished() throws {
    let rig = rig()
    let tickets = try (0..<8).map { _ in try ticket(rig, 1) }
    #expect(rig.refusal(1, .file(RoomFile("a", bytes: 1))) == .tooManyRequests)
    #expect(rig.isDone(2, .file(RoomFile("a", bytes: 1))), "another's do not count")
    #expect(status(rig, tickets[0], 1) == nil)
    #expect(rig.refusal(1, .file(RoomFile("a", bytes: 1))) == .tooManyRequests)
    rig.change { $0.abandonUpload(of: tickets[0].id) }
    #expect(rig.isDone(1, .file(RoomFile("a", bytes: 1))))
    rig.wait(milliseconds: 60_000)
    #expect(rig.hub.counts.files == 0)
    #expect(rig.isDone(1, .file(RoomFile("a", bytes: 1))))
  }

  @Test("the files of a room and those of a hub have a limit, which tickets alone do not take up")
  func full() throws {
    let rig = rig { settings in
      settings.files.room = 2 * (1_000 + Self.overhead)
      settings.files.hub = 3 * (1_000 + Self.overhead)
    }
    rig.member(3, "cem", in: "other")
    let waiting = try (0..<3).map { _ in try ticket(rig, 1_000) }
    _ = try share(rig, 1_000)
    #expect(status(rig, waiting[0], 1_000) == nil)
    #expect(status(rig, waiting[1], 1_000) == 507)
    #expect(rig.refusal(1, .file(RoomFile("a", bytes: 0))) == .tooManyRequests)
    _ = try share(rig, 1_000, of: 3)
    #expect(rig.refusal(3, .file(RoomFile("a", bytes: 0))) == .tooManyRequests)
    rig.change { $0.abandonUpload(of: waiting[0].id) }
    #expect(status(rig, waiting[2], 1_000) == nil, "what is given up frees its place")
  }

  @Test("an upload that takes longer than 600 s is given up")
  func slow() throws {
    let rig = rig()
    let ticket = try ticket(rig, 3)
    #expect(status(rig, ticket, 3) == nil)
    rig.wait(milliseconds: 599_999)
    let isTakenInTime = take(rig, [1], ticket.id)
    rig.wait(milliseconds: 1)
    let isTakenLate = take(rig, [2], ticket.id)
    #expect(isTakenInTime && !isTakenLate)
    #expect(rig.hub.counts.files == 0 && rig.hub.counts.fileBytes == 0)
  }

  @Test("what a member has shared stays with the room, what is on its way goes with the member")
  func leaving() throws {
    let rig = rig()
    let shared = try share(rig, 3)
    let arriving = try ticket(rig, 3)
    #expect(status(rig, arriving, 3) == nil)
    let announced = try ticket(rig, 3)
    rig.clear()
    #expect(rig.isDone(1, .leave))
    let isTaken = take(rig, [1], arriving.id)
    #expect(!isTaken && status(rig, announced, 3) == 403)
    #expect(rig.hub.file(shared) != nil && rig.hub.counts.files == 1)
    rig.disconnect(2)
    #expect(rig.hub.file(shared) == nil && rig.hub.piece(0, of: shared) == nil)
    #expect(rig.hub.counts.files == 0 && rig.hub.counts.fileBytes == 0)
  }

  @Test("the files of a room that is closed for everybody go, those of others stay")
  func closed() throws {
    let rig = rig()
    rig.member(3, "cem", in: "other")
    let (mine, others) = (try share(rig, 3), try share(rig, 3, of: 3))
    _ = try ticket(rig, 3, of: 2)
    #expect(rig.isDone(1, .close()))
    #expect(rig.hub.file(mine) == nil && rig.hub.file(others) != nil && rig.hub.counts.files == 1)
  }

  @Test("the files of a member that joins again in place of itself stay with the room")
  func replaced() throws {
    let rig = HubRig()
    rig.member(1, "ann")
    let shared = try share(rig, 3)
    rig.member(2, "ann")
    #expect(rig.hub.file(shared) != nil)
  }

  @Test("the smallest parts are kept in large pieces")
  func pieces() throws {
    let rig = rig()
    let count = RoomFileTable.pieceBytes + 10
    let ticket = try ticket(rig, count)
    #expect(status(rig, ticket, count) == nil)
    for index in 0..<100 { _ = take(rig, [UInt8(index)], ticket.id) }
    _ = take(rig, [UInt8](repeating: 9, count: count - 100), ticket.id)
    let isShared = end(rig, ticket.id)
    #expect(isShared)
    let first = try #require(rig.hub.piece(0, of: ticket.id))
    let start = (0..<100).map { UInt8($0) }
    #expect(first.count == RoomFileTable.pieceBytes && Array(first.prefix(100)) == start)
    #expect(rig.hub.piece(1, of: ticket.id) == [UInt8](repeating: 9, count: 10))
    #expect(rig.hub.piece(2, of: ticket.id) == [] && rig.hub.piece(-1, of: ticket.id) == [])
  }
}
