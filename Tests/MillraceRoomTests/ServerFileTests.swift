import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

@Suite("Room server: files", .timeLimit(.minutes(30))) struct ServerFileTests {
  private func run(
    _ rig: ServerRig, _ method: String, _ path: String, _ headers: [(name: String, value: String)] = [],
    body: [UInt8] = []
  ) async throws -> HTTPClient.Response {
    let address = try WebAddress("http://127.0.0.1:\(rig.server.port)\(path)")
    var request = HTTPClient.Request(method, address)
    request.headers = headers
    request.body = .bytes(body)
    request.limit = 20_000_000
    request.proxy = .direct
    request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
    return try await HTTPClient().run(request)
  }

  private func bearer(_ ticket: String) -> [(name: String, value: String)] {
    [(name: "Authorization", value: "Bearer \(ticket)")]
  }

  private func ticket(_ member: ServerMember, _ file: RoomFile) async throws -> RoomFileTicket {
    try await member.ask(.file(file)).payload(RoomFileTicket.self)
  }

  /// Shares a file with this content.
  private func share(
    _ rig: ServerRig, _ member: ServerMember, _ bytes: [UInt8], name: String = "a.txt", type: String? = nil
  ) async throws -> RoomFileTicket {
    let ticket = try await ticket(member, RoomFile(name, bytes: bytes.count, type: type))
    let answer = try await run(rig, "POST", "/files?name=a", bearer(ticket.ticket), body: bytes)
    #expect(answer.status == 201 && answer["Location"] == ticket.path)
    return ticket
  }

  @Test("a file that a member sends is pushed to the others, who read it with its name and type")
  func shared() async throws {
    let rig = try await ServerRig.begin()
    let (ann, annJoined) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    let ticket = try await share(rig, ann, bytes, name: "a b.png", type: "image/PNG; x=1")
    let file = RoomFile("a b.png", bytes: bytes.count, type: "image/PNG; x=1")
    let id = try await bob.push("of the file") { push -> RoomName? in
      guard case .file(file, id: let id, from: annJoined.peer) = push else { return nil }
      return id
    }
    #expect(id == ticket.id)
    let read = try await run(rig, "GET", ticket.path)
    #expect(read.status == 200 && read.body == bytes)
    #expect(read["Content-Type"] == "image/png")
    #expect(
      read["Content-Disposition"] == "attachment; filename=\"a_b.png\"; filename*=UTF-8''a%20b.png")
    #expect(read["X-Content-Type-Options"] == "nosniff")
    #expect(read["Content-Security-Policy"] == "sandbox")
    #expect(read["Cross-Origin-Resource-Policy"] == "same-origin")
    #expect(read["Cache-Control"] == "no-store")
    let head = try await run(rig, "HEAD", ticket.path)
    #expect(head.status == 200 && head.body.isEmpty && head["Content-Type"] == "image/png")
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("the largest file goes both ways, and an empty one too", arguments: [10_000_000, 0])
  func sizes(count: Int) async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    let ticket = try await share(rig, ann, bytes)
    let read = try await run(rig, "GET", ticket.path)
    let isSame = read.body == bytes
    #expect(read.status == 200 && isSame)
    await rig.server.stop()
  }

  @Test("an upload without a ticket, with one that nobody gave, or with a used one is refused")
  func noTicket() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let ticket = try await share(rig, ann, [1, 2, 3])
    let without = try await run(rig, "POST", "/files", body: [1, 2, 3])
    #expect(without.status == 401 && without["WWW-Authenticate"] == "Bearer")
    let basic = [(name: "Authorization", value: "Basic YTpi")]
    #expect(try await run(rig, "POST", "/files", basic, body: [1]).status == 401)
    for secret in [ticket.ticket, ticket.id.rawValue, "none"] {
      let refused = try await run(rig, "POST", "/files", bearer(secret), body: [1, 2, 3])
      #expect(refused.status == 403)
      #expect(
        String(decoding: refused.body, as: UTF8.self)
          .hasPrefix("the ticket is unknown, was used, or is older than 60 s"))
    }
    let large = [UInt8](repeating: 7, count: 1_000_000)
    #expect(try await run(rig, "POST", "/files", bearer("none"), body: large).status == 403)
    #expect(rig.server.counts.files == 1)
    await rig.server.stop()
  }

  @Test("an upload that is larger or smaller than was said is refused", arguments: [(4, 413), (2, 400)])
  func otherSize(count: Int, status: Int) async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let ticket = try await ticket(ann, RoomFile("a", bytes: 3))
    let body = [UInt8](repeating: 7, count: count)
    #expect(try await run(rig, "POST", "/files", bearer(ticket.ticket), body: body).status == status)
    #expect(rig.server.counts.files == 0)
    await rig.server.stop()
  }

  @Test("an upload without a length is refused")
  func noLength() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let ticket = try await ticket(ann, RoomFile("a", bytes: 3))
    let client = try RawConnection(port: rig.server.port)
    client.send(
      "POST /files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(ticket.ticket)\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    #expect(client.readHead().hasPrefix("HTTP/1.1 411 "))
    client.close()
    await rig.server.stop()
  }

  @Test("where the room is full an upload is refused with 507")
  func full() async throws {
    let rig = try await ServerRig.begin { $0.hub.files.room = 4_000 }
    let (ann, _) = try await rig.member("ann")
    let second = try await ticket(ann, RoomFile("b", bytes: 1_000))
    _ = try await share(rig, ann, [UInt8](repeating: 7, count: 1_000))
    let body = [UInt8](repeating: 7, count: 1_000)
    let refused = try await run(rig, "POST", "/files", bearer(second.ticket), body: body)
    #expect(refused.status == 507)
    #expect(String(decoding: refused.body, as: UTF8.self).contains("more than 4000 bytes"))
    await rig.server.stop()
  }

  @Test("where the files from an address are too many an upload is refused with 507")
  func addressFull() async throws {
    let rig = try await ServerRig.begin { $0.hub.files.address = 4_000 }
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob", in: "other")
    _ = try await share(rig, ann, [UInt8](repeating: 7, count: 1_000))
    let second = try await ticket(bob, RoomFile("b", bytes: 1_000))
    let body = [UInt8](repeating: 7, count: 1_000)
    let refused = try await run(rig, "POST", "/files", bearer(second.ticket), body: body)
    #expect(refused.status == 507)
    #expect(
      String(decoding: refused.body, as: UTF8.self)
        .hasPrefix("the files from this address would have more than 4000 bytes"))
    await rig.server.stop()
  }

  /// Begins to read a file, and takes only the head of the answer.
  private func reader(_ rig: ServerRig, _ path: String) throws -> RawConnection {
    let reader = try RawConnection(port: rig.server.port, buffer: 4_096)
    reader.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(reader.readHead().hasPrefix("HTTP/1.1 200 "))
    return reader
  }

  @Test("who reads slowly keeps neither members nor pages out, and others may read when they are done")
  func readers() async throws {
    let rig = try await ServerRig.begin { $0.hub.files.downloadsPerAddress = 2 }
    let (ann, _) = try await rig.member("ann")
    let large = try await share(rig, ann, [UInt8](repeating: 7, count: 10_000_000))
    let small = try await share(rig, ann, [1, 2, 3])
    let readers = [try reader(rig, large.path), try reader(rig, large.path)]
    let refused = try await run(rig, "GET", small.path)
    #expect(refused.status == 503 && refused["Retry-After"] == "2")
    #expect(try await run(rig, "HEAD", small.path).status == 200)
    #expect(try await run(rig, "GET", "/").status == 200)
    let (bob, _) = try await rig.member("bob")
    #expect(try await bob.isAlive())
    readers[0].close()
    while try await run(rig, "GET", small.path).status == 503 {}
    // A file that was read to its end counts no more.
    for _ in 0..<5 { #expect(try await run(rig, "GET", small.path).status == 200) }
    readers[1].close()
    await rig.server.stop()
  }

  @Test("who sends slowly keeps neither members nor pages out, and a ticket that had to wait is still good")
  func senders() async throws {
    let rig = try await ServerRig.begin { $0.hub.files.uploadsPerAddress = 2 }
    let (ann, _) = try await rig.member("ann")
    var senders: [RawConnection] = []
    for _ in 0..<2 {
      let ticket = try await ticket(ann, RoomFile("a", bytes: 100))
      let sender = try RawConnection(port: rig.server.port)
      sender.send(Self.head(ticket.ticket, 100) + "some of it")
      senders.append(sender)
    }
    let later = try await ticket(ann, RoomFile("b", bytes: 3))
    func share() async throws -> HTTPClient.Response {
      try await run(rig, "POST", "/files", bearer(later.ticket), body: [1, 2, 3])
    }
    // Until both are there, the third would not be one too many.
    try await serverWaits(until: "both") { rig.server.uploads == 2 }
    let refused = try await share()
    #expect(refused.status == 503 && refused["Retry-After"] == "1")
    #expect(try await run(rig, "GET", "/").status == 200)
    let (bob, _) = try await rig.member("bob")
    #expect(try await bob.isAlive())
    senders[0].close()
    var answer = try await share()
    while answer.status == 503 { answer = try await share() }
    #expect(answer.status == 201)
    // One that is complete counts no more, nor one that is refused.
    for _ in 0..<5 {
      let ticket = try await ticket(ann, RoomFile("c", bytes: 3))
      for status in [201, 403] {
        let answer = try await run(rig, "POST", "/files", bearer(ticket.ticket), body: [1, 2, 3])
        #expect(answer.status == status)
      }
    }
    senders[1].close()
    try await serverWaits(until: "the end of both") { rig.server.uploads == 0 }
    await rig.server.stop()
  }

  @Test("who has read for too long does not get the rest, however much it still takes")
  func slowReader() async throws {
    let rig = try await ServerRig.begin {
      $0.hub.files.downloadsPerAddress = 1
      $0.hub.files.downloadSeconds = 1
    }
    let (ann, _) = try await rig.member("ann")
    let count = 10_000_000
    let large = try await share(rig, ann, [UInt8](repeating: 7, count: count))
    let small = try await share(rig, ann, [1, 2, 3])
    let reader = try reader(rig, large.path)
    var received = 0
    while try await run(rig, "GET", small.path).status == 503 {
      received += reader.read(1_024)?.count ?? 0
      try await Task.sleep(for: .milliseconds(10))
    }
    while let bytes = reader.read() { received += bytes.count }
    #expect(received < count)
    reader.close()
    await rig.server.stop()
  }

  @Test("an upload that breaks off frees its place, and nobody learns of it")
  func broken() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    let ticket = try await ticket(ann, RoomFile("a", bytes: 100_000))
    let client = try RawConnection(port: rig.server.port)
    client.send(Self.head(ticket.ticket, 100_000) + "some of it")
    try await serverWaits(until: "the reserved bytes") { rig.server.counts.fileBytes > 100_000 }
    client.close()
    try await serverWaits(until: "the place") { rig.server.counts.files == 0 }
    #expect(rig.server.counts.fileBytes == 0)
    #expect(try await bob.isAlive())
    let hasPush = bob.pushes.contains { if case .file = $0 { true } else { false } }
    #expect(!hasPush)
    await rig.server.stop()
  }

  @Test("an upload that takes too long frees its place, and what still comes gets 410")
  func slow() async throws {
    let rig = try await ServerRig.begin { $0.hub.files.uploadSeconds = 1 }
    let (ann, _) = try await rig.member("ann")
    let ticket = try await ticket(ann, RoomFile("a", bytes: 100))
    let client = try RawConnection(port: rig.server.port)
    client.send(Self.head(ticket.ticket, 100) + "some of it")
    try await serverWaits(until: "the place") { rig.server.counts.files == 0 }
    client.send("more of it")
    #expect(client.readHead().contains(" 410 "))
    client.close()
    await rig.server.stop()
  }

  private static func head(_ ticket: String, _ count: Int) -> String {
    "POST /files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(ticket)\r\n"
      + "Content-Length: \(count)\r\n\r\n"
  }

  @Test("a file has gone with its room, also for those who are reading it")
  func roomEnds() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let count = 10_000_000
    let ticket = try await share(rig, ann, [UInt8](repeating: 7, count: count))
    let reader = try RawConnection(port: rig.server.port, buffer: 4_096)
    reader.send("GET \(ticket.path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(reader.readHead().hasPrefix("HTTP/1.1 200 "))
    try await ann.ask(.leave)
    #expect(rig.server.counts.files == 0)
    var received = 0
    while let bytes = reader.read() { received += bytes.count }
    #expect(received < count)
    reader.close()
    #expect(try await run(rig, "GET", ticket.path).status == 404)
    await rig.server.stop()
  }

  @Test("what is no file is not found", arguments: ["/files/none", "/files/", "/files/a%00", "/files/a/b"])
  func unknown(path: String) async throws {
    let rig = try await ServerRig.begin()
    #expect(try await run(rig, "GET", path).status == 404)
    await rig.server.stop()
  }

  @Test("a ticket is no file before its content is here")
  func early() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let ticket = try await ticket(ann, RoomFile("a", bytes: 3))
    #expect(try await run(rig, "GET", ticket.path).status == 404)
    await rig.server.stop()
  }

  @Test("other methods are refused with those that are understood")
  func methods() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let ticket = try await share(rig, ann, [1])
    let get = try await run(rig, "GET", "/files")
    #expect(get.status == 405 && get["Allow"] == "POST")
    let delete = try await run(rig, "DELETE", ticket.path)
    #expect(delete.status == 405 && delete["Allow"] == "GET, HEAD")
    await rig.server.stop()
  }

  @Test("pages of another origin neither read nor send files")
  func origins() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let read = try await share(rig, ann, [1])
    let sent = try await ticket(ann, RoomFile("a", bytes: 1))
    let evil = [(name: "Origin", value: "https://evil.example")]
    #expect(try await run(rig, "GET", read.path, evil).status == 403)
    #expect(try await run(rig, "POST", "/files", evil + bearer(sent.ticket), body: [1]).status == 403)
    let own = [(name: "Origin", value: "http://127.0.0.1:\(rig.server.port)")]
    #expect(try await run(rig, "POST", "/files", own + bearer(sent.ticket), body: [1]).status == 201)
    await rig.server.stop()
  }

  @Test(
    "what could run in the hub's origin is served as bytes",
    arguments: [
      nil, "", "text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript", "image/png\r\nX: y",
    ])
  func dangerousTypes(type: String?) { #expect(RoomFileHeaders.type(type) == "application/octet-stream") }

  @Test(
    "a name stays what it is, whatever it holds, except for what would make it look like another",
    arguments: [
      ("a.txt", "a.txt", "a.txt"), ("../a/b", ".._a_b", "..%2Fa%2Fb"),
      ("<b>\"\\\r\n;ü😀'%", "_b__________", "%3Cb%3E%22%5C__%3B%C3%BC%F0%9F%98%80%27%25"),
      ("invoice\u{202E}gnp.exe", "invoice_gnp.exe", "invoice_gnp.exe"),
      ("\u{0}\u{7F}\u{85}\u{61C}\u{200E}\u{2029}\u{2066}a\u{2069}", "_______a_", "_______a_"),
      ("\u{5E9}\u{200D}", "__", "%D7%A9%E2%80%8D"),
    ])
  func names(name: String, plain: String, encoded: String) {
    #expect(
      RoomFileHeaders.disposition(name)
        == "attachment; filename=\"\(plain)\"; filename*=UTF-8''\(encoded)")
  }
}
