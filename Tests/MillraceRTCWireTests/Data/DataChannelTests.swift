import Testing

@testable import MillraceRTCWire

/// The Data Channel Establishment Protocol (RFC 8832), payload identifiers (RFC 8831) and stream numbers.
@Suite("Data channels")
struct DataChannelTests {
  private func written(_ message: DataChannelMessage) throws(DataChannelProblem) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: message.byteCount)
    var target = buffer.mutableSpan
    let count = try message.write(into: &target)
    return (0..<count).map { target[$0] }
  }

  private func parse(_ bytes: [UInt8], limit: Int = 65_535) throws(DataChannelProblem) -> DataChannelMessage {
    try DataChannelMessage(parsing: bytes.span, maximumTextBytes: limit)
  }

  // MARK: Messages

  @Test("an open has its fields where RFC 8832 section 5.1 draws them")
  func layout() throws {
    let open = DataChannelOpen(
      label: "chat", subprotocol: "é", reliability: .lifetime(milliseconds: 0x0102_0304), isOrdered: false,
      priority: 0x0506)
    let bytes: [UInt8] = [
      0x03, 0x82, 0x05, 0x06, 0x01, 0x02, 0x03, 0x04, 0x00, 0x04, 0x00, 0x02, 0x63, 0x68, 0x61, 0x74, 0xC3,
      0xA9,
    ]
    #expect(try written(.open(open)) == bytes)
    #expect(try parse(bytes) == .open(open))
  }

  @Test("an acknowledgement is one byte")
  func acknowledgement() throws {
    #expect(try written(.acknowledgement) == [0x02])
    #expect(try parse([0x02]) == .acknowledgement)
    #expect(throws: DataChannelProblem.trailingBytes(2)) { try parse([0x02, 0, 0]) }
  }

  @Test(
    "the six channel types are reliability and order",
    arguments: [
      (0x00, .reliable, true), (0x80, .reliable, false), (0x01, .retransmissions(5), true),
      (0x81, .retransmissions(5), false), (0x02, .lifetime(milliseconds: 5), true),
      (0x82, .lifetime(milliseconds: 5), false),
    ] as [(UInt8, DataChannelReliability, Bool)])
  func types(type: UInt8, reliability: DataChannelReliability, isOrdered: Bool) throws {
    let bytes: [UInt8] = [0x03, type, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0]
    let open = DataChannelOpen(label: "", reliability: reliability, isOrdered: isOrdered)
    #expect(try parse(bytes) == .open(open))
    // A reliable channel has no parameter: what is received is ignored, 0 is sent.
    #expect(
      try written(.open(open))
        == (reliability == .reliable ? Array(bytes.prefix(7)) + [0, 0, 0, 0, 0] : bytes))
  }

  @Test("other channel types are refused", arguments: [0x03, 0x04, 0x40, 0x7F, 0x83, 0xFF] as [UInt8])
  func unknownType(type: UInt8) {
    #expect(throws: DataChannelProblem.unknownChannelType(type)) {
      try parse([0x03, type, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0])
    }
  }

  @Test("an open that is cut anywhere, or has bytes behind its end, is refused")
  func lengths() throws {
    let bytes = try written(.open(DataChannelOpen(label: "label", subprotocol: "proto")))
    for count in bytes.indices {
      let needed = count == 0 ? 1 : count < 12 ? 12 : bytes.count
      #expect(throws: DataChannelProblem.truncated(bytes: count, needed: needed)) {
        try parse(Array(bytes.prefix(count)))
      }
    }
    #expect(throws: DataChannelProblem.trailingBytes(1)) { try parse(bytes + [0]) }
  }

  @Test("other messages are refused", arguments: [0x00, 0x01, 0x04, 0xFF] as [UInt8])
  func unknownMessage(type: UInt8) {
    #expect(throws: DataChannelProblem.unknownMessage(type)) { try parse([type]) }
  }

  @Test(
    "a label or protocol that is not UTF-8 is refused",
    arguments: [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
  func notUTF8(text: [UInt8]) {
    let count = UInt8(text.count)
    #expect(throws: DataChannelProblem.notUTF8) {
      try parse([0x03, 0, 1, 0, 0, 0, 0, 0, 0, count, 0, 0] + text)
    }
    #expect(throws: DataChannelProblem.notUTF8) {
      try parse([0x03, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, count] + text)
    }
  }

  @Test("texts have a limit for reading, and that of their length for writing")
  func limits() throws {
    let bytes = try written(.open(DataChannelOpen(label: "abcd", subprotocol: "efghi")))
    #expect(throws: DataChannelProblem.textTooLong(bytes: 5, allowed: 4)) { try parse(bytes, limit: 4) }
    #expect(throws: Never.self) { try parse(bytes, limit: 5) }
    let long = String(repeating: "x", count: 65_535)
    let open = DataChannelMessage.open(DataChannelOpen(label: long, subprotocol: long))
    #expect(try parse(written(open)) == open)
    #expect(throws: DataChannelProblem.textTooLong(bytes: 65_536, allowed: 65_535)) {
      try written(.open(DataChannelOpen(label: "", subprotocol: long + "x")))
    }
  }

  @Test("a target without room is refused")
  func room() {
    var buffer = [UInt8](repeating: 0, count: 12)
    var target = buffer.mutableSpan
    var problems: [DataChannelProblem] = []
    for (message, offset) in [
      (.open(DataChannelOpen(label: "a")), 0), (.acknowledgement, 12), (.acknowledgement, 11),
    ]
      as [(DataChannelMessage, Int)]
    {
      do throws(DataChannelProblem) { try message.write(into: &target, at: offset) } catch {
        problems.append(error)
      }
    }
    #expect(problems == [.noRoom(bytes: 12, needed: 13), .noRoom(bytes: 0, needed: 1)])
  }

  @Test("no bytes crash the reader, and what it takes is written with the same bytes")
  func hostile() throws {
    var random = SeededRandom(seed: 8)
    var taken = 0
    for _ in 0..<20_000 {
      var bytes = random.extremeBytes(Int.random(in: 0...24, using: &random))
      if bytes.count >= 12, random.next() & 3 != 0 {
        bytes[0] = 3
        bytes[1] &= 0x82
        (bytes[8], bytes[10]) = (0, 0)
        bytes[9] = UInt8(random.next() & 3)
        bytes[11] = UInt8(max(0, bytes.count - 12 - Int(bytes[9])))
        for index in 12..<bytes.count where random.next() & 7 != 0 { bytes[index] &= 0x7F }
      }
      guard let message = try? parse(bytes) else { continue }
      taken += 1
      if case .open(let open) = message, open.reliability == .reliable {
        bytes.replaceSubrange(4..<8, with: [0, 0, 0, 0])
      }
      if try written(message) != bytes { Issue.record("\(bytes)") }
    }
    #expect(taken > 1_000)
  }

  // MARK: Payload identifiers

  @Test("payload identifiers have the numbers of RFC 8831, empty messages their own")
  func identifiers() {
    #expect(DataChannelPPID.allCases.map(\.rawValue) == [50, 51, 52, 53, 54, 56, 57])
    #expect(DataChannelPPID(rawValue: 55) == nil)
    #expect(DataChannelPPID(isText: true, isEmpty: false).rawValue == 51)
    #expect(DataChannelPPID(isText: true, isEmpty: true).rawValue == 56)
    #expect(DataChannelPPID(isText: false, isEmpty: false).rawValue == 53)
    #expect(DataChannelPPID(isText: false, isEmpty: true).rawValue == 57)
    #expect(DataChannelPPID.allCases.filter(\.isText).map(\.rawValue) == [51, 54, 56])
    #expect(DataChannelPPID.allCases.filter(\.isDeprecated).map(\.rawValue) == [52, 54])
    #expect(DataChannelPPID.allCases.filter(\.isEmpty).map(\.rawValue) == [56, 57])
  }

  // MARK: Streams

  @Test("the client opens even streams, the server odd ones, the lowest free first")
  func parity() {
    var (client, server) = (DataChannelIDs(role: .client), DataChannelIDs(role: .server))
    let first = (0..<3).map { _ in (client.allocate(), server.allocate()) }
    #expect(first.map(\.0) == [0, 2, 4] && first.map(\.1) == [1, 3, 5])
    client.release(2)
    client.release(2)
    client.release(9)
    #expect(client.count == 2 && !client.isInUse(2))
    let next = (0..<2).map { _ in client.allocate() }
    #expect(next == [2, 6])
  }

  @Test(
    "every stream up to the limit is allocated once", arguments: [0, 1, 2, 63, 64, 65, 1_024, 65_535, 70_000])
  func limit(limit: Int) {
    for (role, first) in [(.client, 0), (.server, 1)] as [(DataChannelIDs.Role, Int)] {
      var ids = DataChannelIDs(role: role, limit: limit)
      var found: [UInt16] = []
      while let id = ids.allocate() { found.append(id) }
      #expect(found.map(Int.init) == Array(stride(from: first, to: min(limit, 65_535), by: 2)))
      #expect(ids.count == found.count)
    }
  }

  @Test("the peer's streams have the other parity, exist, and are free")
  func peer() throws {
    var ids = DataChannelIDs(role: .server, limit: 100)
    try ids.accept(0)
    func problem(_ id: UInt16) -> DataChannelProblem? {
      do throws(DataChannelProblem) { try ids.accept(id) } catch { return error }
      return nil
    }
    #expect(problem(0) == .streamInUse(0))
    #expect(problem(1) == .wrongParity(1))
    #expect(problem(100) == .streamBeyondLimit(100, limit: 100))
    #expect(problem(65_534) == .streamBeyondLimit(65_534, limit: 100))
    #expect(problem(98) == nil)
    #expect(!ids.isInUse(65_535))
  }

  @Test("agreed streams have either parity, and are not allocated again")
  func agreed() throws {
    var ids = DataChannelIDs(role: .client, limit: 100)
    try ids.reserve(0)
    try ids.reserve(3)
    let first = ids.allocate()
    #expect(first == 2)
    #expect(throws: DataChannelProblem.streamInUse(3)) { try ids.accept(3) }
    ids.release(0)
    let again = ids.allocate()
    #expect(again == 0 && ids.count == 3)
  }
}
