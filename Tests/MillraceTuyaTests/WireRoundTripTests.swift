import MillraceCrypto
import MillraceJSON
import Testing

@testable import MillraceTuya

/// What is written is read again, in every dialect and however the stream is cut.
@Suite("Round trips")
struct WireRoundTripTests {
  /// A repeatable source of numbers: SplitMix64.
  private struct Source: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var value = state
      value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
      return value ^ value >> 31
    }
    mutating func bytes(_ range: ClosedRange<Int>) -> [UInt8] {
      let count = Int.random(in: range, using: &self)
      return (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }
  }

  struct Wire: Sendable, CustomStringConvertible {
    var dialect: TuyaDialect
    var security = TuyaSecurity.sl4
    var level = TuyaSignLevel.full
    var description: String { "\(dialect) \(security) \(level)" }

    static let all =
      TuyaSecurity.allCases.map { Wire(dialect: .v1, security: $0) }
      + TuyaSignLevel.allCases.map { Wire(dialect: .v21, level: $0) } + [Wire(dialect: .v22)]

    var framing: TuyaFraming {
      let random = [UInt8](repeating: 0x61, count: TuyaKeys.randomBytes)
      let key = SecretKey(utf8: "0123456789abcdef")
      var keys = TuyaKeys(localKey: key, cryptRandom: random, signRandom: random.reversed())
      let media = Array(random.prefix(16))
      keys.media = SecretKey(media.span)
      var framing = TuyaFraming(dialect, keys: keys)
      framing.security = security
      framing.signLevel = level
      framing.largestSent = 700
      return framing
    }
  }

  private func packet(_ dialect: TuyaDialect, _ source: inout Source) -> TuyaPacket {
    var attributes = TuyaAttributes()
    if Bool.random(using: &source) {
      attributes.add(.sessionID, "session-\(UInt8.random(in: 0...99, using: &source))")
    }
    if Bool.random(using: &source) {
      attributes.add(.eventTime, UInt64.random(in: 0...UInt64.max, using: &source))
    }
    if Bool.random(using: &source) {
      attributes.add(TuyaAttributeID(rawValue: 4_711), bytes: source.bytes(0...40))
    }
    let id = UInt16.random(in: 0...UInt16.max, using: &source)
    var head = TuyaMediaHead(id, TuyaStreamFlag.allCases.randomElement(using: &source) ?? .end)
    let type = TuyaPacketType(rawValue: UInt8.random(in: 30...37, using: &source))
    let data = source.bytes(0...3_000)
    switch type {
    case .text, .file:
      if dialect != .v1 { head.counter = UInt32.random(in: 0...UInt32.max, using: &source) }
    case .video, .audio, .image:
      head.milliseconds = UInt64.random(in: 0..<1 << 42, using: &source)
      if dialect == .v1 && type != .image {
        head.microseconds = UInt64.random(in: 0...UInt64.max, using: &source)
      }
      if dialect == .v22 && type == .video { head.isKeyFrame = Bool.random(using: &source) }
      if dialect == .v22 && type != .audio { head.iv = source.bytes(16...16) }
    case .event:
      return TuyaPacket(type, attributes, .event(TuyaEventType(rawValue: id), data))
    default:
      let ids = (0..<Int.random(in: 0...9, using: &source)).map { UInt16($0 * 7) }
      return id & 1 == 0
        ? TuyaPacket(.sessionNew, attributes, .sessionIDs(send: ids, receive: ids.reversed()))
        : TuyaPacket(type, attributes, data.isEmpty ? .none : .other(data))
    }
    return TuyaPacket(type, attributes, .media(head, data))
  }

  @Test(
    "packets arrive as they were sent, whole or in fragments, however the stream is cut", arguments: Wire.all)
  func packets(wire: Wire) throws {
    var source = Source(state: 7)
    let packets = (0..<60).map { _ in packet(wire.dialect, &source) }
    // Both ways: with ChaCha20 they differ. The numbers pass their largest.
    for direction in TuyaDirection.allCases {
      var writer = TuyaFrameWriter(wire.framing, direction, sequence: 65_500)
      var bytes: [UInt8] = []
      for packet in packets { try writer.append(packet, to: &bytes) }
      for largest in [1, 5, 64, 5_000, Int.max] {
        var reader = TuyaFrameReader(wire.framing, direction, sequence: 65_500)
        var (read, place): ([TuyaPacket], Int) = ([], 0)
        while place < bytes.count {
          let count = min(bytes.count - place, Int.random(in: 1...min(largest, 1 << 20), using: &source))
          reader.append(Array(bytes[place..<place + count]))
          place += count
          while let packet = try reader.next() { read.append(packet) }
        }
        #expect(!reader.isInPacket)
        #expect(read.map(Self.withoutLength) == packets, "\(direction), at most \(largest) bytes at once")
      }
    }
  }

  /// The cloud adds the length of what it cuts.
  private static func withoutLength(_ packet: TuyaPacket) -> TuyaPacket {
    var attributes = TuyaAttributes()
    for entry in packet.attributes.entries where entry.id != .payloadLength { attributes.append(entry) }
    return TuyaPacket(packet.type, attributes, packet.content)
  }

  @Test(
    "a bit that changes where frames are protected is noticed, and nothing is read behind it",
    arguments: Wire.all)
  func changed(wire: Wire) throws {
    guard wire.dialect == .v1 || wire.dialect == .v21 && wire.level != .none else { return }
    var writer = TuyaFrameWriter(wire.framing, .down, sequence: 5)
    var bytes: [UInt8] = []
    var attributes = TuyaAttributes()
    attributes.add(.clientTime, 1_754_380_053_514)
    for _ in 0..<2 { try writer.append(TuyaPacket(.pong, attributes), to: &bytes) }
    for index in 0..<bytes.count / 2 {
      for bit in 0..<8 {
        var changed = bytes
        changed[index] ^= 1 << UInt8(bit)
        // The byte between is not used, and is signed with the rest.
        var reader = TuyaFrameReader(wire.framing, .down, sequence: 5)
        reader.append(changed)
        var first: TuyaWireProblem?
        do throws(TuyaWireProblem) {
          let packet = try reader.next()
          // A longer length waits for bytes that do not come.
          #expect(packet == nil, "byte \(index), bit \(bit)")
        } catch { first = error }
        guard let first else { continue }
        reader.append(bytes)
        do throws(TuyaWireProblem) {
          _ = try reader.next()
          Issue.record("something was read behind a problem")
        } catch { #expect(error == first) }
      }
    }
  }

  @Test(
    "the order of numbers and fragments is kept to, and nothing lies between fragments",
    arguments: [
      (["a", "c"], .seqOrder), (["a", "a"], .seqOrder), (["f", "m", "l", "f", "a"], .fragOrder),
      (["m"], .fragOrder), (["l"], .fragOrder), (["f", "f"], .fragOrder), (["f", "a"], .fragOrder),
      (["f", "l", "l"], .fragOrder),
    ] as [([String], TuyaWireProblem.Code)])
  func order(frames: [String], code: TuyaWireProblem.Code) throws {
    let framing = Wire(dialect: .v21, level: .none).framing
    var (bytes, number): ([UInt8], UInt8) = ([], 1)
    for frame in frames {
      let first: UInt8 = ["f": 0x62, "m": 0xA2, "l": 0xE2][frame] ?? 0x22
      let body: [UInt8] = frame == "m" || frame == "l" ? [7, 7] : [0x44, 0, 4, 0, 3]
      let sequence =
        frame == "c" ? number + 1 : frame == "a" && bytes.count > 0 && code == .seqOrder ? 1 : number
      bytes += [first, 0, sequence, 0, UInt8(body.count)] + body
      number += 1
    }
    var reader = TuyaFrameReader(framing, .down)
    reader.append(bytes)
    do throws(TuyaWireProblem) {
      while try reader.next() != nil {}
      Issue.record("\(frames) was taken")
    } catch { #expect(error.code == code) }
  }

  @Test("a packet of fragments that grows beyond what is taken is refused before it is complete")
  func tooLarge() throws {
    var framing = Wire(dialect: .v21).framing
    framing.mostPacketBytes = 1_500
    var writer = TuyaFrameWriter(framing, .up, sequence: 5)
    var bytes: [UInt8] = []
    let data = [UInt8](repeating: 7, count: 10_000)
    try writer.append(
      TuyaPacket(.text, TuyaAttributes(), .media(TuyaMediaHead(3, .onlyOne), data)), to: &bytes)
    var reader = TuyaFrameReader(framing, .up, sequence: 5)
    reader.append(Array(bytes.prefix(3 * (700 + 32 + 5))))
    do throws(TuyaWireProblem) {
      _ = try reader.next()
      Issue.record("the packet was taken")
    } catch { #expect(error.code == .oversized) }
  }

  // MARK: User data and parameters

  @Test("user data are the same object in both forms, and as text within JSON")
  func userData() throws {
    let data: JSONValue = ["language": "en", "chatAttributes": ["a": 1], "payloadsEndDataId": 7, "4711": "x"]
    for dialect in [TuyaDialect.v1, .v21] {
      #expect(try TuyaUserData.read(TuyaUserData.bytes(data, dialect), dialect) == data)
    }
    let text = #"{"language":"en","chatAttributes":"{\"a\":1}","payloadsEndDataId":7,"4711":"x"}"#
    #expect(try TuyaUserData.read(Array(text.utf8), .v21) == data)
    #expect(
      TuyaUserData.bytes(["payloadsEndDataId": 1], .v1) == [0x03, 0xEA, 2, 0, 0, 0, 2, 0, 1])
  }

  @Test("a number of the user data keeps its value in v1, whatever its size")
  func numbers() throws {
    let data: JSONValue = [
      "errorCode": 39_001, "chatAttributes": 2, "4711": 70_000, "payloadsEndDataId": 70_000,
      "4712": .number("18446744073709551615"),
    ]
    #expect(try TuyaUserData.read(TuyaUserData.bytes(data, .v1), .v1) == data)
    #expect(TuyaUserData.bytes(["chatAttributes": 2], .v1) == [0x03, 0xEB, 1, 0, 0, 0, 1, 2])
    #expect(TuyaUserData.bytes(["errorCode": -1], .v1) == [0x03, 0xEE, 6, 0, 0, 0, 2] + Array("-1".utf8))
  }

  @Test("parameters are read as they were written, in both forms", arguments: [TuyaDialect.v1, .v21])
  func parameters(dialect: TuyaDialect) throws {
    var attributes = TuyaAttributes()
    let sound = TuyaAudioParameters(.pcm, channels: 2, bits: 16, rate: 48_000)
    let video = TuyaVideoParameters(codec: 2, width: 640, height: 480, fps: 15)
    let image = TuyaImageParameters(payload: .url, format: 1, width: 640, height: 480)
    let file = TuyaFileParameters(payload: .base64, format: 4, name: "two words.json")
    sound.add(to: &attributes, dialect)
    video.add(to: &attributes, dialect)
    image.add(to: &attributes, dialect)
    file.add(to: &attributes, dialect)
    #expect(try TuyaAudioParameters(attributes) == sound)
    #expect(try TuyaVideoParameters(attributes) == video)
    #expect(try TuyaImageParameters(attributes) == image)
    #expect(try TuyaFileParameters(attributes) == file)
    let long = TuyaAudioParameters(.opus, bitRate: 16_000, frameMilliseconds: 40, frameBytes: 80)
    #expect(long.text == "111 1 16 16000 0 16000 40 80")
    #expect(try TuyaAudioParameters(parsing: long.text) == long)
  }
}
