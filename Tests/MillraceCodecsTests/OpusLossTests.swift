import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceCodecs

private let rate = 48_000
private let frame = 960

/// A tone as a call carries it: Opus, tuned for voices, in packets of 20 ms.
@Suite("losses of Opus") final class OpusLossTests {
  private let pool = BlockPool(blockBytes: 1_500, blockCount: JitterBuffer.capacity + 2)
  private let encoder: LibopusEncoder
  private let amplitude = 0.2

  init() throws {
    encoder = try LibopusEncoder(rate: rate, channels: 1, application: .voip)
    encoder.set(bitrate: 32_000)
  }

  /// Packet `index` of a tone of 1 kHz, which has whole periods in every packet.
  private func makePacket(_ index: Int) -> Packet? {
    let sound = Fixture.sine(
      1_000, rate: rate, frames: frame, amplitude: amplitude, from: index * frame
    )
    var bytes = [UInt8](repeating: 0, count: 1_500)
    let count = sound.withUnsafeBytes { source in
      bytes.withUnsafeMutableBufferPointer { target -> Int in
        guard let from = source.baseAddress, let to = target.baseAddress else { return 0 }
        return encoder.encode(from, sample: .f32, frame: frame, to: to, room: target.count)
      }
    }
    guard count > 0, let block = pool.take() else { return nil }
    var packet = Packet(block, byteCount: count)
    var target = packet.mutableSamples(of: UInt8.self)
    for place in 0..<count { target[place] = bytes[place] }
    packet.position = Int64(index * frame)
    packet.duration = frame
    return packet
  }

  /// The level of each 10 ms.
  private func play(_ count: Int, _ isLost: (Int) -> Bool) throws -> [Double] {
    var player = try JitterPlayer(.opus, rate: rate, channels: 1, JitterPlayer.Settings(fades: true))
    var levels: [Double] = []
    var hop = [Float](repeating: 0, count: rate / 100)
    for time in stride(from: 0, to: count * 20, by: 10) {
      let now = Nanoseconds.milliseconds(Int64(time))
      // Encoded also where it is lost: the encoder does not know.
      if time % 20 == 0, let packet = makePacket(time / 20), !isLost(time / 20) {
        _ = player.admit(packet, arrival: now)
      }
      guard let due = player.due, due <= now else { continue }
      var target = hop.mutableSpan
      _ = player.step(at: now, into: &target)
      levels.append(Fixture.rms(hop))
    }
    player.clear()
    return levels
  }

  @Test("a tone is not silent while up to ten packets in a row are lost", arguments: [1, 3, 6, 10])
  func burst(length: Int) throws {
    let levels = try play(150) { (60..<60 + length).contains($0) || (90..<90 + length).contains($0) }
    let tenth = amplitude / 2.0.squareRoot() / 10
    #expect(levels.dropFirst(10).allSatisfy { $0 > tenth }, "\(levels.dropFirst(110).prefix(40))")
  }

  @Test("a source that stops in a tone is silent within a second")
  func stop() throws {
    let levels = try play(150) { $0 >= 60 }
    #expect(levels.suffix(30).allSatisfy { $0 == 0 })
  }
}
