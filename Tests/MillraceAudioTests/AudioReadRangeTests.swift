import MillraceAudio
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// Hostile files with timestamps at the ends of their range, read with FFmpeg's libraries.
@Suite(
  "audio.read: false timestamps",
  .enabled(if: MediaFile.canEncode("libopus"), "FFmpeg here has no Opus encoder"))
struct AudioReadRangeTests {
  private let folder = TemporaryFolder()

  /// The pages of an Ogg file.
  private func pages(_ bytes: [UInt8]) -> [[UInt8]] {
    var pages: [[UInt8]] = []
    var start = 0
    while start + 27 <= bytes.count {
      let body = start + 27 + Int(bytes[start + 26])
      let end = bytes[start + 27..<body].reduce(body) { $0 + Int($1) }
      pages.append(Array(bytes[start..<end]))
      start = end
    }
    return pages
  }

  /// A page with another granule position and a valid checksum (RFC 3533 section 6).
  private func page(_ page: [UInt8], granule: Int64) -> [UInt8] {
    var page = page
    for byte in 0..<8 { page[6 + byte] = UInt8(truncatingIfNeeded: granule >> Int64(8 * byte)) }
    for index in 22..<26 { page[index] = 0 }
    var sum: UInt32 = 0
    for byte in page {
      sum ^= UInt32(byte) << 24
      for _ in 0..<8 { sum = sum & 0x8000_0000 != 0 ? sum << 1 ^ 0x04C1_1DB7 : sum << 1 }
    }
    for index in 0..<4 { page[22 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(8 * index)) }
    return page
  }

  @Test(
    "granule positions at the ends of 64 bits do not trap",
    arguments: [.max, .max - 10_000, .max / 2, 1 << 53, -2, -1 << 53, .min / 2, .min + 10_000, .min]
      as [Int64])
  func granules(granule: Int64) throws {
    let path = folder.file("in.ogg")
    MediaFile.write(
      Fixture.sine16(440, rate: 48_000, frames: 150_000), codec: "libopus", rate: 48_000, channels: 1,
      bitRate: 64_000,
      to: path)
    let whole = pages(contents(path))
    try #require(whole.count >= 5)
    for places in [[2], [3], [whole.count - 1], [2, 3], Array(2..<whole.count)] {
      let bytes = whole.indices.flatMap {
        places.contains($0) ? page(whole[$0], granule: granule) : whole[$0]
      }
      put(bytes, at: path)
      for start in [0, 500] {
        guard
          let bench = try? NodeBench(
            AudioRead.self, ["path": .string(path), "start": .number(Double(start))])
        else { continue }
        // The result is up to the libraries, but holes of more than ten seconds are not filled.
        do throws(BenchFault) { try bench.run() } catch { continue }
        #expect(bench.hasEnded && bench.int16().count <= 48_000 * 60)
      }
    }
  }
}
