import MillraceCrypto
import MillraceTesting
import Testing

@testable import MillraceTuya

/// What a reader refuses, beyond what the vendor's clients do, and the ways of sound that ask for no memory.
@Suite("Strict frames")
struct WireStrictTests {
  private static let localKey = SecretKey(utf8: "0123456789abcdef")
  private static let random = Array("aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF".utf8)

  private static func framing(_ dialect: TuyaDialect, _ level: TuyaSignLevel = .full) -> TuyaFraming {
    var keys = TuyaKeys(localKey: localKey, random: random)
    if dialect == .v1 { keys = TuyaKeys(localKey: localKey, cryptRandom: random, signRandom: random) }
    let media = Array(random.prefix(16))
    if dialect == .v22 { keys.media = SecretKey(media.span) }
    var framing = TuyaFraming(dialect, keys: keys)
    framing.signLevel = level
    return framing
  }

  /// The head of sound without data.
  private static let sound = "0001819879332c88"

  /// A packet of v21 with one attribute, as hexadecimal digits.
  private static func with(_ type: String, _ id: UInt8, _ value: String, _ payload: String) -> String {
    let value = Array(value.utf8)
    let head = [0, 0, 0, UInt8(value.count + 4), 0, id, 0, UInt8(value.count)] + value
    return type + Hex.encode(head.span) + payload
  }

  /// The code of the problem with a packet of these bytes in a frame that is right; nil: there is none.
  private func problem(
    _ hex: String, _ dialect: TuyaDialect, _ direction: TuyaDirection = .down
  ) throws -> TuyaWireProblem.Code? {
    let bytes = try #require(Hex.decode(hex))
    var writer = TuyaFrameWriter(Self.framing(dialect), direction, sequence: 5)
    var frame: [UInt8] = []
    try writer.append(bytes, cutAt: [bytes.count], isHello: false, to: &frame)
    var reader = TuyaFrameReader(Self.framing(dialect), direction, sequence: 5)
    reader.append(frame)
    do throws(TuyaWireProblem) { _ = try reader.next() } catch { return error.code }
    return nil
  }

  // MARK: Bad packets

  @Test(
    "a packet whose lengths, kinds or parameters lie is refused with its reason, and its content is not told",
    arguments: [
      ("", .v21, .emptyPacket),
      // Text: two bytes, no counter, a counter without end, one beyond 32 bits.
      ("440004", .v21, .mediaHead), ("44000400", .v21, .varint), ("4400040080808080", .v21, .varint),
      ("440004008080808010", .v21, .varint),
      // Attributes: within the length, beyond the packet, within a head, beyond the block, another size.
      ("45000000", .v21, .attrBlockTruncated), ("450000000900", .v21, .attrBlockTruncated),
      ("4700000003002b00", .v21, .attrTruncated), ("4700000005002b000561", .v21, .attrTruncated),
      ("0700000007001800030000c8", .v21, .attrSize), ("07000000050018000102", .v21, .attrSize),
      // The length in attribute 9.
      ("4500000008000900040000138c00040003", .v21, .payloadLength),
      // Parameters: three numbers, no number, no UTF-8.
      (with("3f", 80, "101 1 16", sound), .v21, .paramsBad),
      (with("3f", 80, "a 1 16 16000", sound), .v21, .paramsBad),
      (with("3f", 80, "-101 1 16 16000", sound), .v21, .paramsBad),
      ("3f0000000500500001ff" + sound, .v21, .paramsBad),
      (with("43", 100, "0 x name", "00090001"), .v21, .paramsBad),
      (with("41", 90, "0 1 640", sound), .v21, .paramsBad),
      (with("3d", 70, "2 640 480 15", sound), .v21, .paramsBad),
      // User data: none, an array, half.
      (with("47", 111, "", "0000"), .v21, .userData), (with("47", 111, "[]", "0000"), .v21, .userData),
      (with("47", 111, "{", "0000"), .v21, .userData),
      // The security suite: of v20, and of an unknown level.
      ("0300000026000a0022" + String(repeating: "00", count: 34), .v21, .suite),
      ("0300000025000a002109" + String(repeating: "00", count: 32), .v21, .suite),
      // Lists of data ids: cut, odd, more behind.
      ("0e00", .v21, .sessionIDs), ("0e00030001", .v21, .sessionIDs), ("0e0002000100", .v21, .sessionIDs),
      ("0e000200010002000200", .v21, .sessionIDs), ("4600", .v21, .eventHead),
      ("3e000181987933", .v21, .mediaHead),
      // v1: the kind, the length of the payload, of an event, of data.
      ("110000000c002b05000000053132333435" + "00000000", .v1, .attrKind),
      ("1100000008002b090000000131" + "00000000", .v1, .attrKind),
      ("11000000", .v1, .attrBlockTruncated), ("08000000", .v1, .payloadLength),
      ("0800000001", .v1, .payloadLength), ("080000000000", .v1, .payloadLength),
      ("4600000006000000057b7d", .v1, .eventHead), ("46000000020005", .v1, .eventHead),
      ("44000000080003000000000261", .v1, .mediaLength), ("44000000080003000000000061", .v1, .mediaLength),
      ("4400000006000300000000", .v1, .mediaHead),
      // v1: user data whose attribute is longer than they are, or of no kind.
      ("4700000010006f050000000903ea020000000500010000000400000000", .v1, .userData),
      ("4700000010006f050000000903ea090000000200010000000400000000", .v1, .userData),
      // v22: a picture without a tag.
      ("40000600019879332c0a" + String(repeating: "00", count: 20), .v22, .mediaDecrypt),
    ] as [(String, TuyaDialect, TuyaWireProblem.Code)])
  func badPacket(hex: String, dialect: TuyaDialect, code: TuyaWireProblem.Code) throws {
    #expect(try problem(hex, dialect) == code)
  }

  @Test(
    "a packet that is unusual and right is taken",
    arguments: [
      // One byte; an unknown type; an event of v1 whose length says 0; a session without ids; unknown attributes.
      ("18", .v21), ("7801020304", .v21), ("4600000006000000007b7d", .v1), ("0e", .v21),
      ("1900000006c3500002abcd", .v21),
      // Parameters with more numbers than are known, and user data that are text within JSON.
      (with("3f", 80, "111 1 16 16000 0 16000 40 80 9", sound), .v21),
      (with("47", 111, #"{"chatAttributes":"{\"a\":1}"}"#, "0000"), .v21),
    ] as [(String, TuyaDialect)])
  func goodPacket(hex: String, dialect: TuyaDialect) throws {
    #expect(try problem(hex, dialect) == nil)
  }

  // MARK: Frames

  @Test("without its signature only a whole hello is taken, and only as the first frame")
  func unsigned() throws {
    let hello = try #require(Hex.decode("22000100060200000000ff"))
    var reader = TuyaFrameReader(Self.framing(.v21), .up)
    reader.append(Array(hello.prefix(5)))
    #expect(try reader.next() == nil)
    reader.append(Array(hello.dropFirst(5)))
    #expect(try reader.next()?.type == .clientHello)
    // The same once more, with the next number.
    reader.append([0x22, 0, 2] + hello.dropFirst(3))
    #expect(throws: TuyaWireProblem.self) { try reader.next() }
    for first in ["2200010006080000000000", "62000100060200000000ff", "22000100060800000000ff"] {
      var reader = TuyaFrameReader(Self.framing(.v21), .up)
      reader.append(try #require(Hex.decode(first)))
      #expect(throws: TuyaWireProblem.self, "\(first)") { try reader.next() }
    }
  }

  @Test(
    "a server learns the keys of v1 from the hello, whose signature is then checked",
    arguments: [true, false])
  func oldHello(isRight: Bool) throws {
    let framing = Self.framing(.v1)
    var writer = TuyaFrameWriter(framing, .up)
    var bytes: [UInt8] = []
    try writer.append(TuyaPacket(.clientHello), to: &bytes)
    try writer.append(TuyaPacket(.ping), to: &bytes)
    var unknown = framing
    unknown.keys = TuyaKeys(localKey: SecretKey(utf8: "other"), random: Self.random)
    var reader = TuyaFrameReader(unknown, .up)
    reader.append(bytes)
    #expect(try reader.next()?.type == .clientHello)
    if isRight {
      reader.use(framing.keys)
      #expect(try reader.next()?.type == .ping)
    } else {
      do throws(TuyaWireProblem) {
        _ = try reader.next()
        Issue.record("a hello with a wrong signature was taken")
      } catch { #expect(error.code == .signMismatch) }
    }
  }

  @Test("a frame of v1 that begins a packet has an initialization vector, whatever its length looks like")
  func missingIV() throws {
    var writer = TuyaFrameWriter(Self.framing(.v1), .down, sequence: 5)
    var frame: [UInt8] = []
    try writer.append(TuyaPacket(.delayedDisconnect), to: &frame)
    frame[3] &= 0xFE
    var reader = TuyaFrameReader(Self.framing(.v1), .down, sequence: 5)
    reader.append(frame)
    do throws(TuyaWireProblem) { _ = try reader.next() } catch { #expect(error.code == .ivMissing) }
  }

  @Test(
    "pieces that are as large as the length of a frame allows arrive",
    arguments: [TuyaDialect.v21, .v22, .v1])
  func largest(dialect: TuyaDialect) throws {
    var framing = Self.framing(dialect)
    framing.largestSent = 1 << 20
    framing.limit = 1 << 20
    var writer = TuyaFrameWriter(framing, .up, sequence: 5)
    let data = [UInt8](repeating: 7, count: 200_000)
    let packet = TuyaPacket(.text, TuyaAttributes(), .media(TuyaMediaHead(3, .onlyOne), data))
    var bytes: [UInt8] = []
    try writer.append(packet, to: &bytes)
    var reader = TuyaFrameReader(framing, .up, sequence: 5)
    reader.append(bytes)
    #expect(try reader.next() == packet)
  }

  @Test("the cloud says the length of a packet that it cuts, and a picture of v22 gets a vector")
  func completed() throws {
    let framing = Self.framing(.v22)
    let data = [UInt8](repeating: 7, count: 9_000)
    var bytes: [UInt8] = []
    var writer = TuyaFrameWriter(framing, .down, sequence: 5)
    try writer.append(
      TuyaPacket(.image, TuyaAttributes(), .media(TuyaMediaHead(6, .onlyOne), data)), to: &bytes)
    var reader = TuyaFrameReader(framing, .down, sequence: 5)
    reader.append(bytes)
    let packet = try #require(try reader.next())
    #expect(packet.attributes.integer(.payloadLength) == UInt64(24 + data.count + 16))
    guard case .media(let head, let read) = packet.content else { return #expect(Bool(false)) }
    #expect(read == data && head.iv.count == 16)
  }

  // MARK: Signatures

  @Test("the code without memory is that of the library, for every length of key and message")
  func code() {
    for length in 0...256 {
      let bytes = [UInt8](repeating: UInt8(length & 255), count: length % 131 + 1)
      let key = SecretKey(bytes.span)
      let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ length) }
      let half = length / 2
      var code = InlineArray<32, UInt8>(repeating: 0)
      var target = code.mutableSpan
      ShortHMAC(key: key).write(
        message.span.extracting(0..<half), message.span.extracting(half..<length), to: &target)
      let right = HMAC.sha256(message.span, key: key)
      #expect(code.indices.allSatisfy { code[$0] == right[$0] }, "\(length)")
    }
    #expect("\(ShortHMAC(key: Self.localKey))" == "ShortHMAC(hidden)")
  }

  @Test("keys are never printed")
  func hidden() {
    let keys = TuyaKeys(localKey: Self.localKey, random: Self.random)
    var text = ""
    dump(keys, to: &text)
    #expect((text + "\(keys)").split(whereSeparator: { !$0.isHexDigit }).allSatisfy { $0.count < 16 })
  }

  // MARK: Memory

  @Test(
    "sound is written and read without asking for memory",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"), arguments: TuyaSignLevel.allCases)
  func heap(level: TuyaSignLevel) throws {
    let framing = Self.framing(.v21, level)
    var writer = TuyaFrameWriter(framing, .up, sequence: 5)
    var reader = TuyaFrameReader(framing, .up, sequence: 5)
    let data = [UInt8](repeating: 3, count: 640)
    var (buffer, count): ([UInt8], Int) = ([], 0)
    buffer.reserveCapacity(4_096)
    let requests = try HeapScope.count(warmup: 20, calls: 500) {
      buffer.removeAll(keepingCapacity: true)
      let head = TuyaMediaHead(1, .streaming, milliseconds: 1_754_380_053_514)
      let span = data.span
      try writer.appendSound(head, data: span, to: &buffer)
      reader.append(buffer)
      _ = try reader.next { head, data in
        if head.flag == .streaming && data.count == 640 && data[639] == 3 { count += 1 }
      }
    }
    #expect(count == 520)
    #expect(requests == 0)
  }

  @Test(
    "a packet of sound without attributes is written without asking for memory",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"), arguments: TuyaSignLevel.allCases)
  func packetHeap(level: TuyaSignLevel) throws {
    let framing = Self.framing(.v21, level)
    var writer = TuyaFrameWriter(framing, .up, sequence: 5)
    let packet = TuyaPacket(
      .audio, TuyaAttributes(),
      .media(TuyaMediaHead(1, .streaming, milliseconds: 1_754_380_053_514), [UInt8](repeating: 3, count: 640))
    )
    var buffer: [UInt8] = []
    buffer.reserveCapacity(4_096)
    let requests = try HeapScope.count(warmup: 20, calls: 500) {
      buffer.removeAll(keepingCapacity: true)
      try writer.append(packet, to: &buffer)
    }
    var reader = TuyaFrameReader(framing, .up, sequence: 5 + 519)
    reader.append(buffer)
    #expect(try reader.next() == packet)
    #expect(requests == 0)
  }

  @Test("the first packet of sound arrives with its parameters, the others without a packet")
  func firstSound() throws {
    let framing = Self.framing(.v21)
    var writer = TuyaFrameWriter(framing, .up, sequence: 5)
    var bytes: [UInt8] = []
    let (text, data) = (Array("101 1 16 16000".utf8), [UInt8](repeating: 1, count: 9_000))
    try writer.appendSound(TuyaMediaHead(1, .start), parameters: text.span, data: data.span, to: &bytes)
    try writer.appendSound(TuyaMediaHead(1, .end), data: data.span, to: &bytes)
    var reader = TuyaFrameReader(framing, .up, sequence: 5)
    reader.append(bytes)
    guard case .packet(let packet) = try reader.next(sound: { _, _ in }) else {
      return #expect(Bool(false))
    }
    #expect(try TuyaAudioParameters(packet.attributes)?.codec == .pcm)
    var size = 0
    #expect(try reader.next { head, data in size = head.flag == .end ? data.count : 0 } == .sound)
    #expect(size == 9_000)
  }
}
