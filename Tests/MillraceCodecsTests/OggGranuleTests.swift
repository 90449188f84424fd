import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Malicious Ogg: complete pages with valid checksums and extreme numbers.
@Suite("Ogg with false numbers")
struct OggGranuleTests {
  private static let sent = chirp(rate: 16_000, frames: 16_000)
  private let folder = TemporaryFolder()
  private let bytes: [UInt8]
  private let pages: [Range<Int>]

  init() throws {
    let path = folder.file("a.opus")
    try writeOgg(try encode(Self.sent, rate: 16_000, cut: 320), to: path, rate: 16_000, ["page": 100])
    bytes = contents(path)
    var pages: [Range<Int>] = []
    for page in ParsedPage.all(bytes) {
      let start = pages.last?.upperBound ?? 0
      pages.append(start..<start + page.byteCount)
    }
    self.pages = pages
  }

  /// A page with another granule position.
  private func page(_ index: Int, granule: Int64) -> [UInt8] {
    var page = Array(bytes[pages[index]])
    for byte in 0..<8 { page[6 + byte] = UInt8(truncatingIfNeeded: granule >> Int64(8 * byte)) }
    return checked(page)
  }

  /// The file with other granule positions on some pages.
  private func file(_ granules: [Int: Int64]) -> [UInt8] {
    pages.indices.flatMap { index in
      granules[index].map { page(index, granule: $0) } ?? Array(bytes[pages[index]])
    }
  }

  /// Plays bytes through every reader and checks that all of the audio is played.
  private func expectPlays(_ bytes: [UInt8], _ words: String) throws {
    let path = folder.file("b.opus")
    put(bytes, at: path)
    for parameters in [[:], ["rate": 8_000]] as [[String: ParameterValue]] {
      let (read, _) = try readOgg(path, parameters)
      #expect(read.count == 51, "\(words)")
      // Slightly more than three years, and never before the pre-skip.
      #expect(read.allSatisfy { $0.position > -70_000 && $0.position <= 1 << 43 }, "\(words)")
      _ = try decode(read, rate: parameters["rate"] == nil ? 48_000 : 8_000)
    }
    let play = try NodeBench(
      SpeechPlay.self, inputs: ["in": OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 20)])
    play.push(bytes, cut: 600, ends: true)
    try play.finish()
    #expect(play.events().contains { $0.name == "finished" }, "\(words)")
  }

  @Test(
    "granule positions at the limits of 64 bits neither trap nor lose audio",
    arguments: [
      .max, .max - 1, .max - 48_000, .max / 2, .max / 2 + 1, 1 << 62, 1 << 43, 1 << 42, -2, -48_000, .min,
      .min + 1,
    ] as [Int64])
  func granules(granule: Int64) throws {
    let last = pages.count - 1
    for places in [[2], [3], [last - 1], [last], [2, 3], [3, 4], Array(2...last)] {
      let granules = Dictionary(uniqueKeysWithValues: places.map { ($0, granule) })
      // On the last page a low position means trimming, possibly of everything, which is not a loss.
      try expectPlays(file(granules), "\(granule) on \(places)")
    }
  }

  @Test("streams that start, or follow each other, at such positions keep their place")
  func chains() throws {
    for granule in [.max, .max / 2, 1 << 42, (1 << 42) - 1] as [Int64] {
      let path = folder.file("c.opus")
      let stream = file([pages.count - 1: granule])
      put((0..<6).flatMap { _ in stream }, at: path)
      let (read, _) = try readOgg(path)
      #expect(read.count == 6 * 51)
      #expect(zip(read, read.dropFirst()).allSatisfy { $0.position <= $1.position && $1.position < 1 << 44 })
    }
  }

  @Test("header fields at their limits neither trap nor lose audio")
  func headers() throws {
    for (place, values) in [
      9: [1, 2], 10: [0, 255], 11: [0, 255], 12: [255], 15: [255], 16: [255], 17: [127, 128],
    ] {
      for value in values {
        var head = Array(bytes[pages[0]])
        head[28 + place] = UInt8(value)
        put(checked(head) + bytes[pages[0].upperBound...], at: folder.file("d.opus"))
        let (read, _) = try readOgg(folder.file("d.opus"))
        #expect(read.count == 51)
        _ = try decode(read, rate: 48_000)
      }
    }
    // No channels, and more than two.
    for value: UInt8 in [0, 3, 255] {
      var head = Array(bytes[pages[0]])
      head[28 + 9] = value
      put(checked(head) + bytes[pages[0].upperBound...], at: folder.file("d.opus"))
      #expect(
        refusal(OggRead.self, ["path": .string(folder.file("d.opus"))]).contains("neither mono nor stereo"))
    }
  }

  /// A page of 255 full lacing values: its packet continues in the next page.
  private func endless(number: UInt32) -> [UInt8] {
    var page = Array(bytes[pages[2]][..<(pages[2].lowerBound + 27)])
    page[5] = number == 2 ? 0 : 1
    for index in 0..<8 { page[6 + index] = 0xFF }
    for index in 0..<4 { page[18 + index] = UInt8(truncatingIfNeeded: number >> UInt32(8 * index)) }
    page[26] = 255
    return checked(page + [UInt8](repeating: 255, count: 255) + [UInt8](repeating: 0x0B, count: 255 * 255))
  }

  @Test("a packet without an end is dropped, not buffered; later audio plays")
  func endlessPacket() throws {
    let heads = Array(bytes[..<pages[2].lowerBound])
    let flood = (0..<40).flatMap { endless(number: UInt32($0 + 2)) }
    put(heads + flood + bytes[pages[2].lowerBound...], at: folder.file("e.opus"))
    let (read, events) = try readOgg(folder.file("e.opus"))
    #expect(read.count == 51)
    let told = events.filter { $0.string("what") == "invalid packet" }
    let given = told.reduce(0) { $0 + ($1.number("bytes") ?? 0) }
    // What was buffered when it was dropped; the rest was skipped.
    #expect(given > 131_072 && given < 300_000, "\(given)")
  }
}
