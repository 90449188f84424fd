import COpus
import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

@Suite("codec nodes") struct CatalogueTests {
  @Test("the catalogue lists the nodes, and every port, parameter and event is documented")
  func catalogue() {
    #expect(
      Catalogue.codecs.types == [
        "audio.jitter", "mp3.decode", "ogg.read", "ogg.write", "opus.decode", "opus.encode", "speech.play",
        "speech.read",
      ])
    for entry in Catalogue.codecs.entries.values {
      let contract = entry.contract
      #expect(contract.summary.first?.isLowercase == true && !contract.summary.hasSuffix("."))
      #expect((contract.inputs + contract.outputs).allSatisfy { !$0.text.isEmpty })
      let texts = contract.parameters.map(\.text) + contract.events.map(\.text)
      #expect(texts.filter { $0.hasSuffix(".") }.isEmpty, "\(entry.contract.type)")
      #expect(contract.events.allSatisfy { $0.text.count > 20 })
      #expect(!contract.examples.isEmpty)
    }
  }

  @Test("encoded packets are byte-identical to those of a plain libopus loop")
  func plainLoop() throws {
    let sent = voice(frames: 32_000)
    let packets = try encode(sent, rate: 16_000, cut: 173)
    var error: Int32 = 0
    let encoder = try #require(opus_encoder_create(16_000, 1, OPUS_APPLICATION_VOIP, &error))
    defer { opus_encoder_destroy(encoder) }
    #expect(millrace_opus_encoder_set_bitrate(encoder, 24_000) == OPUS_OK)
    #expect(millrace_opus_encoder_set_complexity(encoder, 5) == OPUS_OK)
    for (index, packet) in packets.dropLast().enumerated() {
      var bytes = [UInt8](repeating: 0, count: 1276)
      let frame = Array(sent[index * 320..<(index + 1) * 320])
      let count = Int(opus_encode(encoder, frame, 320, &bytes, 1276))
      #expect(packet.bytes == Array(bytes.prefix(count)))
    }
    #expect(packets.count == 101)
  }
}
