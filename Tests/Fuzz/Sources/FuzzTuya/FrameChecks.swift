import MillraceCrypto

/// How frames are read. Keys and random numbers are always the same.
struct Wire {
  private(set) var framing: TuyaFraming
  private(set) var direction: TuyaDirection
  /// Frames and packets may be short only.
  let isNarrow: Bool

  private static let random = Array("a random of 32 bytes, always the".utf8)
  private static let iv = Array(random.prefix(16))
  private static let old = TuyaKeys(
    localKey: SecretKey(utf8: "local"), cryptRandom: random, signRandom: random.reversed())
  private static let new = TuyaKeys(localKey: SecretKey(utf8: "local"), random: random)
  private static let sealing = TuyaKeys(
    localKey: SecretKey(utf8: "local"), random: random, media: SecretKey(utf8: "a key of 16 byte"))

  /// - Parameter settings: three bits for the dialect and how it is protected, one for the direction, one for how long frames are.
  init(_ settings: UInt8) {
    switch settings & 7 {
    case 0, 1, 2:
      framing = TuyaFraming(.v1, keys: Self.old)
      framing.security = TuyaSecurity.allCases[Int(settings & 7)]
    case 3, 4, 5:
      framing = TuyaFraming(.v21, keys: Self.new)
      framing.signLevel = TuyaSignLevel.allCases[Int(settings & 7) - 3]
    case 6: framing = TuyaFraming(.v22, keys: Self.sealing)
    // Pictures cannot be read.
    default: framing = TuyaFraming(.v22, keys: Self.new)
    }
    direction = settings & 8 == 0 ? .down : .up
    isNarrow = settings & 16 != 0
    guard isNarrow else { return }
    framing.limit = 64
    framing.largestSent = 16
    framing.mostPacketBytes = 192
  }

  /// Wide enough for all that can be read here, in another direction.
  func widened(_ direction: TuyaDirection, largestSent: Int = 65_000) -> Wire {
    var wire = self
    wire.framing.limit = 65_535
    wire.framing.mostPacketBytes = 1 << 20
    wire.framing.largestSent = largestSent
    wire.direction = direction
    return wire
  }

  var reader: TuyaFrameReader { TuyaFrameReader(framing, direction) }
  var writer: TuyaFrameWriter { TuyaFrameWriter(framing, direction, sequence: 1) { Self.iv } }

  /// All packets of a stream that arrives in pieces of these lengths, again and again.
  func read(_ bytes: [UInt8], pieces: [Int], soundApart: Bool = false) -> Reading {
    var reader = reader
    var reading = Reading()
    var start = 0
    var index = 0
    do throws(TuyaWireProblem) {
      while start < bytes.count {
        let end = min(bytes.count, start + max(1, pieces[index % pieces.count]))
        reader.append(Array(bytes[start..<end]))
        (start, index) = (end, index + 1)
        while let packet = try soundApart ? Self.next(&reader) : reader.next() {
          reading.packets.append(packet)
        }
      }
    } catch {
      reading.problem = error
      check(reader, after: error)
      return reading
    }
    reading.isInPacket = reader.isInPacket
    return reading
  }

  /// The next packet; sound is put into one again.
  private static func next(_ reader: inout TuyaFrameReader) throws(TuyaWireProblem) -> TuyaPacket? {
    var sound: TuyaPacket?
    let found = try reader.next { head, data in
      sound = TuyaPacket(.audio, TuyaAttributes(), .media(head, TuyaPacketForm.array(data)))
    }
    switch found {
    case .nothing: return nil
    case .packet(let packet): return packet
    case .sound:
      guard let sound else { fatalError("sound was found, and not given") }
      return sound
    }
  }

  /// After a problem nothing more is read.
  private func check(_ reader: TuyaFrameReader, after problem: TuyaWireProblem) {
    if problem.text.isEmpty { fatalError("\(problem.code) without a text") }
    var reader = reader
    reader.append([0x22, 0, 1, 0, 1, 8])
    do throws(TuyaWireProblem) {
      _ = try reader.next()
      fatalError("it reads on after \(problem)")
    } catch {
      if error != problem { fatalError("\(error) instead of \(problem)") }
    }
    if reader.isInPacket { fatalError("it keeps bytes after \(problem)") }
  }
}

/// What was read of a stream.
struct Reading: Equatable {
  var packets: [TuyaPacket] = []
  var problem: TuyaWireProblem?
  /// The stream has ended within a packet. False after a problem.
  var isInPacket = false
}

/// Frames as they arrive.
struct FrameChecks {
  private let wire: Wire

  init(_ settings: UInt8) { wire = Wire(settings) }

  /// The first byte says into what pieces the rest is cut. What is read must not depend on them.
  func take(_ bytes: ArraySlice<UInt8>) {
    guard let first = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let whole = wire.read(stream, pieces: [max(1, stream.count)])
    let pieces = [1, Int(first & 0x1F), Int(first >> 3), 2]
    for soundApart in [false, true] {
      let reading = wire.read(stream, pieces: pieces, soundApart: soundApart)
      if reading != whole { fatalError("\(reading) in pieces instead of \(whole)") }
    }
    if whole.packets.count * TuyaFrameHead.bytes > stream.count {
      fatalError("\(whole.packets.count) packets in \(stream.count) bytes")
    }
    for packet in whole.packets { PacketChecks.check(packet, wire) }
  }
}
