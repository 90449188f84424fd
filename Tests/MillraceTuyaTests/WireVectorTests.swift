import Foundation
import MillraceCrypto
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Golden packets: frames of known keys, with what they hold or why they are refused.
@Suite("Golden packets")
struct WireVectorTests {
  @Test(
    "every golden packet decodes to its content or to its error, and a good one encodes to its bytes",
    .enabled(if: GoldenPackets.isThere, GoldenPackets.skipReason))
  func all() throws {
    let packets = try GoldenPackets()
    #expect(packets.vectors.count > 100)
    for vector in packets.vectors { try check(vector, packets) }
  }

  private func check(_ vector: JSONValue, _ packets: GoldenPackets) throws {
    let id = try #require(vector["id"]?.string)
    let direction: TuyaDirection = vector["dir"]?.string == "up" ? .up : .down
    let framing = try packets.framing(vector)
    let first = try #require(vector["start_seq"]?.integer.flatMap { UInt16(exactly: $0) })
    let frames = try #require(vector["frames"]?.array?.compactMap { $0.string.flatMap(Hex.decode) })
    for cut in [Int.max, 1, 7] {
      var reader = TuyaFrameReader(framing, direction, sequence: first)
      var (found, problem): ([TuyaPacket], TuyaWireProblem?) = ([], nil)
      let bytes = frames.flatMap(\.self)
      do throws(TuyaWireProblem) {
        for start in stride(from: 0, to: bytes.count, by: min(cut, bytes.count)) {
          reader.append(Array(bytes[start..<min(bytes.count, start + min(cut, bytes.count))]))
          while let packet = try reader.next() { found.append(packet) }
        }
      } catch { problem = error }
      #expect(problem?.code.rawValue == vector["error"]?.string, "\(id): \(String(describing: problem))")
      guard problem == nil else { continue }
      let packet = try #require(found.last, "\(id)")
      #expect(!reader.isInPacket, "\(id)")
      if let wanted = vector["packet"] { try compare(packet, wanted, framing.dialect, id) }
      guard found.count == 1, id.contains("/up/") || id.contains("/down/") else { continue }
      try encode(packet, vector, framing, direction, first, frames)
    }
  }

  /// A packet that was read is written with the same bytes, cut in the same places.
  private func encode(
    _ packet: TuyaPacket, _ vector: JSONValue, _ framing: TuyaFraming, _ direction: TuyaDirection,
    _ first: UInt16, _ frames: [[UInt8]]
  ) throws {
    let id = vector["id"]?.string ?? ""
    let form = framing.form
    let payload = try form.payload(packet)
    var bytes: [UInt8] = []
    try form.appendHead(packet, payload: payload.count, to: &bytes)
    bytes += payload
    if let app = vector["app"]?.string { #expect(Hex.encode(bytes.span) == app, "\(id)") }
    if let app = vector["app_sha256"]?.string {
      let digest = SHA256.hash(bytes.span)
      #expect(Hex.encode(digest.span) == app, "\(id)")
    }
    // The initialization vector of the packet, in v1.
    let iv = framing.dialect == .v1 && frames[0][3] & 1 == 1 ? Array(frames[0][5..<21]) : []
    var writer = TuyaFrameWriter(framing, direction, sequence: first) { iv }
    var cuts: [Int] = []
    let isHello = packet.type == .clientHello
    for frame in frames.dropLast() {
      cuts.append((cuts.last ?? 0) + frame.count - 5 - (isHello ? 0 : framing.trailerBytes))
    }
    var written: [UInt8] = []
    try writer.append(bytes, cutAt: cuts + [bytes.count], isHello: isHello, to: &written)
    #expect(written == frames.flatMap(\.self), "\(id)")
    guard frames.count == 1, bytes.count <= framing.largestSent else { return }
    var again = TuyaFrameWriter(framing, direction, sequence: first) { iv }
    var whole: [UInt8] = []
    try again.append(packet, to: &whole)
    #expect(whole == frames[0], "\(id)")
  }

  // MARK: Content

  private func compare(
    _ packet: TuyaPacket, _ wanted: JSONValue, _ dialect: TuyaDialect, _ id: String
  ) throws {
    #expect(Int(packet.type.rawValue) == wanted["type"]?.integer, "\(id)")
    for member in wanted["attrs"]?.members ?? [] {
      try compare(member, packet.attributes, dialect, id)
    }
    func ids(_ name: String) -> [UInt16]? {
      wanted[name]?.array?.compactMap { $0.integer.flatMap { UInt16(exactly: $0) } }
    }
    switch packet.content {
    case .sessionIDs(let send, let receive):
      #expect(send == ids("send_ids") && receive == ids("recv_ids"), "\(id)")
    case .event(let type, let data):
      #expect(GoldenPackets.events[type] == wanted["event"]?.string, "\(id)")
      if let text = wanted["data"]?.string { #expect(Array(text.utf8) == data, "\(id)") }
    case .media(let head, let data):
      try compare(head, data, try #require(wanted["media"], "\(id)"), id)
      if let parameters = wanted["params"] { try compare(parameters, packet, id) }
    case .none, .other: break
    }
  }

  private func compare(
    _ member: JSONValue.Member, _ attributes: TuyaAttributes, _ dialect: TuyaDialect, _ id: String
  ) throws {
    let name = try #require(GoldenPackets.attributes[member.name], "\(id): \(member.name)")
    let attribute = TuyaAttributeID(rawValue: name)
    if attribute == .userData {
      let bytes = try #require(attributes.bytes(.userData))
      let data = try TuyaUserData.read(bytes, dialect)
      #expect(data.members?.count == member.value.members?.count, "\(id)")
    } else if let number = member.value.integer {
      #expect(attributes.integer(attribute) == UInt64(number), "\(id): \(member.name)")
    } else if attribute == .securitySuite {
      #expect(attributes.bytes(attribute).map { Hex.encode($0.span) } == member.value.string, "\(id)")
    } else {
      #expect(attributes.text(attribute) == member.value.string, "\(id): \(member.name)")
    }
  }

  private func compare(
    _ head: TuyaMediaHead, _ data: [UInt8], _ wanted: JSONValue, _ id: String
  ) throws {
    #expect(Int(head.dataID) == wanted["data_id"]?.integer, "\(id)")
    #expect(GoldenPackets.flags[head.flag] == wanted["flag"]?.string, "\(id)")
    #expect(data.count == wanted["size"]?.integer, "\(id)")
    if let time = wanted["ts"]?.integer { #expect(head.milliseconds == UInt64(time), "\(id)") }
    if let time = wanted["pts"]?.integer { #expect(head.microseconds == UInt64(time), "\(id)") }
    if let number = wanted["seq"]?.integer { #expect(head.counter == UInt32(number), "\(id)") }
    if let key = wanted["key_frame"]?.bool { #expect(head.isKeyFrame == key, "\(id)") }
    if let iv = wanted["iv"]?.string { #expect(Hex.encode(head.iv.span) == iv, "\(id)") }
    if let bytes = wanted["data"]?.string { #expect(Hex.encode(data.span) == bytes, "\(id)") }
    if let text = wanted["text"]?.string { #expect(data == Array(text.utf8), "\(id)") }
    if let digest = wanted["sha256"]?.string {
      let hash = SHA256.hash(data.span)
      #expect(Hex.encode(hash.span) == digest, "\(id)")
    }
  }

  private func compare(_ wanted: JSONValue, _ packet: TuyaPacket, _ id: String) throws {
    func number(_ name: String) -> Int? { wanted[name]?.integer }
    switch packet.type {
    case .audio:
      let sound = try #require(try TuyaAudioParameters(packet.attributes), "\(id)")
      #expect(Int(sound.codecNumber) == number("codec") && sound.rate == number("rate"), "\(id)")
      #expect(sound.channels == number("channels") && sound.bits == number("bits"), "\(id)")
      #expect(sound.bitRate == number("bitrate") && sound.container == number("container"), "\(id)")
      #expect(sound.frameMilliseconds == number("frame_ms"), "\(id)")
      #expect(sound.frameBytes == number("frame_size"), "\(id)")
    case .image:
      let image = try #require(try TuyaImageParameters(packet.attributes), "\(id)")
      #expect(image.format == number("format") && image.payload == number("payload"), "\(id)")
      #expect(image.width == number("width") && image.height == number("height"), "\(id)")
    case .video:
      let video = try #require(try TuyaVideoParameters(packet.attributes), "\(id)")
      #expect(video.codec == number("codec") && video.fps == number("fps"), "\(id)")
      #expect(video.width == number("width") && video.height == number("height"), "\(id)")
      #expect(video.rate == number("rate"), "\(id)")
    case .file:
      let file = try #require(try TuyaFileParameters(packet.attributes), "\(id)")
      #expect(file.format == number("format") && file.name == wanted["name"]?.string, "\(id)")
    default: break
    }
  }
}

/// The golden packets of the corpus.
struct GoldenPackets {
  static var path: String { (corpus ?? "../shared") + "/vectors/tuya.json" }
  private static var corpus: String? { ProcessInfo.processInfo.environment["MILLRACE_CORPUS"] }
  static var isThere: Bool { FileManager.default.isReadableFile(atPath: path) }
  static let skipReason: Comment = "the corpus has no vectors/tuya.json"

  let vectors: [JSONValue]
  private let keysets: JSONValue

  init() throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: Self.path))
    let json = try JSONValue(parsing: Array(data))
    vectors = try #require(json["vectors"]?.array)
    keysets = try #require(json["keysets"])
  }

  func framing(_ vector: JSONValue) throws -> TuyaFraming {
    let dialect = try #require(vector["dialect"]?.string.flatMap(TuyaDialect.init))
    let set = try #require(vector["keys"]?.string.flatMap { keysets[$0] })
    func text(_ name: String) throws -> String { try #require(set[name]?.string) }
    let local = SecretKey(utf8: try text("local_key"))
    let random = Array(try text("crypt_random").utf8)
    var keys = TuyaKeys(localKey: local, random: random)
    if dialect == .v1 {
      keys = TuyaKeys(
        localKey: local, cryptRandom: random, signRandom: Array(try text("sign_random").utf8))
    }
    let derived = try #require(Hex.decode(try text("derived_crypt_key")))
    #expect(keys.crypt == SecretKey(derived.span))
    if let media = set["media_key"]?.string.flatMap(Hex.decode) { keys.media = SecretKey(media.span) }
    var framing = TuyaFraming(dialect, keys: keys)
    if let level = set["sl"]?.integer {
      framing.security = try #require(TuyaSecurity(rawValue: UInt8(level)))
    }
    if let level = set["sign_level"]?.integer {
      framing.signLevel = try #require(TuyaSignLevel(rawValue: UInt8(level)))
    }
    if let limit = vector["limit"]?.integer { framing.limit = limit }
    return framing
  }

  static let flags: [TuyaStreamFlag: String] = [
    .onlyOne: "OnlyOne", .start: "StreamStart", .streaming: "Streaming", .end: "StreamEnd",
  ]
  static let events: [TuyaEventType: String] = [
    .start: "Start", .payloadsEnd: "PayloadsEnd", .end: "End", .oneShot: "OneShot",
    .chatBreak: "ChatBreak", .serverVAD: "ServerVAD", .mcpCommand: "McpCmd", .sleep: "EventSleep",
  ]
  /// The names of the file, and their ids.
  static let attributes: [String: UInt16] = [
    "agent-token": 45, "audio-bit-depth": 84, "audio-channels": 83, "audio-codec": 81, "audio-params": 80,
    "audio-sample-rate": 82, "biz-code": 41, "biz-tag": 42, "client-id": 12, "client-ts": 113,
    "client-type": 11, "connection-close-code": 31, "connection-id": 23, "connection-status": 24,
    "derived-algorithm": 18, "derived-iv": 19, "encrypt-random": 13, "event-id": 61, "event-ts": 62,
    "file-params": 100, "image-format": 91, "image-height": 93, "image-params": 90, "image-width": 92,
    "latest-expire-ts": 25, "max-fragment-len": 15, "password": 22, "payload-len": 9,
    "payloads-end-data-id": 1_002, "ping-interval": 20, "security-suite": 10, "server-ts": 114,
    "session-close-code": 51, "session-id": 43, "session-state-code": 52, "sign-random": 14,
    "user-data": 111, "username": 21, "video-params": 70,
  ]
}
