import CMillraceSys
import MillraceCrypto
import MillraceTuya

/// What a packet of sound costs in the usual dialect: v21 with a full signature.
enum TuyaPacketCost {
  private static let rounds = 9
  private static let packets = 5_000
  /// Bytes of sound: a frame of Opus at 16 kbit/s and 40 ms, and 20 ms of PCM at 16 kHz.
  private static let sizes = [(name: "Opus", bytes: 80), (name: "PCM", bytes: 640)]
  /// The ends of a frame that are signed, 32 bytes each. Source: the vendor's protocol.
  private static let signedBytes = 64

  static func run() throws -> [Figure] { try sizes.flatMap { try figures($0.name, $0.bytes) } }

  private static func figures(_ name: String, _ bytes: Int) throws -> [Figure] {
    let random = [UInt8](repeating: 7, count: TuyaKeys.randomBytes)
    let framing = TuyaFraming(
      .v21, keys: TuyaKeys(localKey: SecretKey(utf8: "0123456789abcdef"), random: random))
    let data = (0..<bytes).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let signed = Array(data.prefix(signedBytes)) + [UInt8](repeating: 1, count: max(0, signedBytes - bytes))
    var written: [UInt8] = []
    written.reserveCapacity(packets * (bytes + 64))
    func encode() throws -> Double {
      written.removeAll(keepingCapacity: true)
      var writer = TuyaFrameWriter(framing, .down)
      let begin = millrace_monotonic_ns()
      for number in 0..<packets {
        let head = TuyaMediaHead(2, .streaming, milliseconds: UInt64(number))
        try writer.appendSound(head, data: data.span, to: &written)
      }
      return Double(millrace_monotonic_ns() - begin) / 1e3 / Double(packets)
    }
    func decode() throws -> Double {
      if written.isEmpty { _ = try encode() }
      var reader = TuyaFrameReader(framing, .down)
      reader.append(written)
      var sum = 0
      let begin = millrace_monotonic_ns()
      for _ in 0..<packets {
        _ = try reader.next { head, bytes in sum &+= bytes.count &+ Int(head.dataID) }
      }
      let time = Double(millrace_monotonic_ns() - begin) / 1e3 / Double(packets)
      guard sum == packets * (bytes + 2) else { throw MeasurementProblem("a packet of sound was lost") }
      return time
    }
    func floor() -> Double {
      let begin = millrace_monotonic_ns()
      for _ in 0..<packets { use(HMAC.sha256(signed.span, key: framing.keys.sign)) }
      return Double(millrace_monotonic_ns() - begin) / 1e3 / Double(packets)
    }
    let times = try inTurns(rounds: rounds, [encode, decode, floor])
    func row(_ what: String, of subject: String = "millrace", goal: String = "", _ samples: [Double])
      -> Figure
    {
      Figure(
        TuyaSuite.name, "a packet of \(bytes) bytes of \(name): \(what)", of: subject, unit: "us", goal: goal,
        samples: samples)
    }
    return [
      row("encode", goal: "<= 5", times[0]), row("decode", goal: "<= 5", times[1]),
      row("encode", of: "floor", times[2]),
    ]
  }
}
