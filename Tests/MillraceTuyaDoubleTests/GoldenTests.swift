import Foundation
import MillraceCrypto
import MillraceJSON
import Testing

@testable import MillraceTuyaDouble

/// Packets that were made with the vendor's published code.
struct GoldenPacket: Sendable, CustomTestStringConvertible {
  let json: JSONValue
  let keySet: JSONValue

  var id: String { json["id"]?.string ?? "" }
  var testDescription: String { id }
  var isV1: Bool { json["dialect"]?.string == "v1" }
  var side: WireSide { json["dir"]?.string == "up" ? .client : .cloud }
  var frames: [[UInt8]] { json["frames"]?.array?.compactMap { $0.string.flatMap(Hex.decode) } ?? [] }
  var error: String? { json["error"]?.string }
  var isHello: Bool { json["hello"]?.bool ?? false }
  var start: UInt16 { UInt16(json["start_seq"]?.integer ?? 1) }
  /// The packet before encryption; nil: only its hash is known.
  var app: [UInt8]? { json["app"]?.string.flatMap(Hex.decode) }

  var dialect: CloudDialect {
    isV1 ? .v1(security: keySet["sl"]?.integer ?? 0) : .v21(level: keySet["sign_level"]?.integer ?? 0)
  }

  func keys() throws -> CloudKeys {
    let crypt = Array((keySet["crypt_random"]?.string ?? "").utf8)
    return try CloudKeys(
      dialect, localKey: keySet["local_key"]?.string ?? "", cryptRandom: crypt,
      signRandom: keySet["sign_random"]?.string.map { Array($0.utf8) } ?? crypt)
  }

  static let folder = ProcessInfo.processInfo.environment["MILLRACE_CORPUS"].map { $0 + "/vectors/tuya.json" }

  static let all: [GoldenPacket] = {
    guard let folder, let data = FileManager.default.contents(atPath: folder),
      let json = try? JSONValue(parsing: Array(data))
    else { return [] }
    return (json["vectors"]?.array ?? []).filter { $0["dialect"]?.string != "v22" }.map {
      GoldenPacket(json: $0, keySet: json["keysets"]?[$0["keys"]?.string ?? ""] ?? .null)
    }
  }()

  static let good = all.filter { $0.error == nil && $0.json["packet"] != nil }
  static let bad = all.filter { $0.id.contains("/bad/") }
}

@Suite("the double's frames are those of the vendor's code", .enabled(if: GoldenPacket.folder != nil))
struct GoldenTests {
  private func packets(_ golden: GoldenPacket, split: Bool = false) throws -> [CloudPacket] {
    var reader =
      golden.isHello
      ? FrameReader(localKey: golden.keySet["local_key"]?.string ?? "")
      : FrameReader(try golden.keys(), from: golden.side, firstSequence: golden.start)
    reader.limit = golden.json["limit"]?.integer ?? 65_535
    var packets: [CloudPacket] = []
    for frame in golden.frames {
      for part in split ? frame.map({ [$0] }) : [frame] {
        reader.arrive(part)
        while let packet = try reader.next() { packets.append(packet) }
      }
    }
    return packets
  }

  /// Reads everything that a packet of its type has.
  private func readWhole(_ packet: CloudPacket, isV1: Bool) throws {
    if packet.type == PacketType.event { _ = try CloudEvent(packet, isV1: isV1) }
    if packet.type == PacketType.sessionNew { _ = try ChannelLists(packet.payload) }
    if let kind = DataKind(packet: packet.type) {
      _ = try CloudMedia(kind, packet.payload, isV1: isV1)
      _ = try StreamParameters(kind, of: packet, isV1: isV1)
    }
    _ = try CloudUserData(packet, isV1: isV1)
  }

  @Test("all packets are there") func all() {
    #expect(GoldenPacket.good.count > 80 && GoldenPacket.bad.count > 40)
  }

  @Test("a golden packet is read, whole or byte by byte", arguments: GoldenPacket.good)
  func read(_ golden: GoldenPacket) throws {
    let packets = try packets(golden)
    let packet = try #require(packets.last)
    #expect(try self.packets(golden, split: true) == packets)
    #expect(Int(packet.type) == golden.json["packet"]?["type"]?.integer)
    try readWhole(packet, isV1: golden.isV1)
    let media = golden.json["packet"]?["media"]
    if let kind = DataKind(packet: packet.type), let media {
      let read = try CloudMedia(kind, packet.payload, isV1: golden.isV1)
      #expect(Int(read.channel) == media["data_id"]?.integer && read.data.count == media["size"]?.integer)
      if let time = media["ts"]?.integer { #expect(Int(read.time) == time) }
      if let text = media["text"]?.string { #expect(String(decoding: read.data, as: UTF8.self) == text) }
    }
  }

  @Test("a golden packet is written to the byte", arguments: GoldenPacket.good)
  func write(_ golden: GoldenPacket) throws {
    let packet = try #require(try packets(golden).last)
    var writer = FrameWriter(try golden.keys(), from: golden.side, limit: 65_000, firstSequence: golden.start)
    writer.makeIV = { Array("IV0123456789abcd".utf8) }
    if let app = golden.app {
      #expect(packet.head(isV1: golden.isV1) + packet.payload == app)
    }
    // Fragments may be cut anywhere, and the middle of a frame is not signed.
    guard golden.frames.count == 1, !golden.id.contains("middle-flip") else { return }
    #expect(try writer.frames(of: packet) == golden.frames)
  }

  @Test("a bad packet is refused, and one that only looks bad is not", arguments: GoldenPacket.bad)
  func refuse(_ golden: GoldenPacket) throws {
    func readAll() throws { for packet in try packets(golden) { try readWhole(packet, isV1: golden.isV1) } }
    if golden.error == nil { return try readAll() }
    let kind = try #require(Self.kinds[golden.error ?? ""])
    let fault = #expect(throws: WireFault.self) { try readAll() }
    #expect(fault?.kind == kind)
  }

  private static let kinds: [String: WireFault.Kind] = [
    "bad-version": .badVersion, "short-length": .shortFrame, "oversized": .largeFrame,
    "sign-mismatch": .wrongSignature, "decrypt-failed": .notDecrypted, "bad-padding": .badPadding,
    "bad-security-level": .badSecurityLevel, "iv-missing": .noIV, "seq-order": .wrongSequence,
    "frag-order": .fragmentOrder, "attr-block-truncated": .attributeBlock, "attr-truncated": .attributeEntry,
    "attr-size": .attributeSize, "attr-kind": .attributeKind, "payload-length": .payloadLength,
    "varint": .varint, "media-head": .mediaHead, "media-length": .mediaLength, "event-head": .eventHead,
    "session-ids": .channelLists, "params-bad": .badParameters, "user-data": .badUserData, "suite": .suite,
    "empty-packet": .emptyPacket,
  ]

  @Test(
    "only a payload is divided: attributes longer than a fragment are one frame, with which the packet ends or continues",
    arguments: DialogueTests.dialects, [1, 10, 64])
  func smallFragments(_ dialect: CloudDialect, _ limit: Int) throws {
    let random = [UInt8](repeating: 0x41, count: 32)
    let keys = try CloudKeys(dialect, localKey: "key", cryptRandom: random, signRandom: random)
    var writer = FrameWriter(keys, from: .cloud, limit: limit)
    var reader = FrameReader(keys, from: .cloud)
    let attributes = [
      CloudAttribute(AttributeID.connectionStatus, number: 200),
      CloudAttribute(AttributeID.connectionID, String(repeating: "c", count: 80)),
    ]
    for payload in [[], [7], [UInt8](repeating: 8, count: 70)] {
      let packet = CloudPacket(PacketType.authResponse, attributes, payload: payload)
      let frames = try writer.frames(of: packet)
      #expect(frames.count == 1 + (payload.count + limit - 1) / limit)
      var found: [CloudPacket] = []
      for frame in frames {
        #expect(found.isEmpty)
        reader.arrive(frame)
        if let packet = try reader.next() { found.append(packet) }
      }
      #expect(found.count == 1 && !reader.isWithinPacket)
      #expect(found.first?.text(AttributeID.connectionID) == packet.text(AttributeID.connectionID))
      #expect(found.first?.payload == payload)
    }
  }

  @Test(
    "divided packets are put together, with the size that clients need", arguments: DialogueTests.dialects)
  func fragments(_ dialect: CloudDialect) throws {
    let random = [UInt8](repeating: 0x41, count: 32)
    let keys = try CloudKeys(dialect, localKey: "key", cryptRandom: random, signRandom: random)
    for side in [WireSide.client, .cloud] {
      for count in [1, 99, 100, 101, 1_000, 5_000] {
        var writer = FrameWriter(keys, from: side, limit: 100)
        var reader = FrameReader(keys, from: side)
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let media = CloudMedia(.audio, 1, .streaming, time: 5, data)
        let frames = try writer.frames(of: media.packet(isV1: dialect.isV1))
        var found: [CloudPacket] = []
        for frame in frames {
          #expect(found.isEmpty)
          reader.arrive(frame)
          if let packet = try reader.next() { found.append(packet) }
        }
        #expect(try CloudMedia(.audio, found[0].payload, isV1: dialect.isV1) == media)
        let head = media.packet(isV1: dialect.isV1).head(isV1: dialect.isV1).count
        let isDivided = frames.count > 1
        #expect((found[0].bytes(of: AttributeID.payloadLength) != nil) == (isDivided && !dialect.isV1))
        #expect(isDivided == (head + found[0].payload.count > 100))
      }
    }
  }
}
