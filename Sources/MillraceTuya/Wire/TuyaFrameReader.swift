internal import MillraceCrypto

/// Reads the packets of one direction of a connection, however the network has cut it.
///
/// Stricter than the vendor's clients: the number of a frame is exactly one more than that before, fragments lie together, and every length
/// is right. After a problem nothing more is read: TLS keeps the order, so there is nothing to find again. Memory is bounded by the largest
/// packet and what arrives at once.
public struct TuyaFrameReader: Sendable {
  private var framing: TuyaFraming
  private let direction: TuyaDirection
  private var code: ShortHMAC
  /// The next frame may be a hello, which is neither encrypted nor, in v2x, signed.
  private var expectsHello: Bool
  /// The hello of v1 and its signature, which were not made with the keys that are known.
  private var unproven: [UInt8]?
  /// What has arrived; frames before `start` were read.
  private var pending: [UInt8] = []
  private var start = 0
  private var sequence: UInt16
  /// The fragments of a packet so far; nil: none was begun.
  private var parts: [UInt8]?
  /// The initialization vector of the fragments of v1.
  private var iv: [UInt8] = []
  private var problem: TuyaWireProblem?

  /// - Parameters:
  ///   - framing: of the connection.
  ///   - direction: which way the packets go. The first frame of a client is its hello.
  ///   - sequence: the number of the first frame.
  public init(_ framing: TuyaFraming, _ direction: TuyaDirection, sequence: UInt16 = 1) {
    self.framing = framing
    self.direction = direction
    self.sequence = sequence
    code = ShortHMAC(key: framing.keys.sign)
    expectsHello = direction == .up && sequence == 1
  }

  /// Uses other keys for the frames that follow, such as those that a hello determines. Only they show whether the hello of v1 was signed
  /// rightly: the next packet is refused where it was not.
  public mutating func use(_ keys: TuyaKeys) {
    framing.keys = keys
    code = ShortHMAC(key: keys.sign)
  }

  /// True when the connection ends in the middle of a packet.
  public var isInPacket: Bool { start < pending.count || parts != nil }

  /// Adds bytes as they arrive.
  public mutating func append(_ bytes: [UInt8]) {
    guard problem == nil else { return }
    if start == pending.count {
      pending.removeAll(keepingCapacity: true)
      start = 0
    } else if start > framing.largestLength {
      pending.removeFirst(start)
      start = 0
    }
    pending.append(contentsOf: bytes)
  }

  /// The next packet; nil: more bytes are needed.
  /// - Throws: when the bytes are no packet. So does every later call.
  public mutating func next() throws(TuyaWireProblem) -> TuyaPacket? {
    var packet: TuyaPacket?
    _ = try step { form, bytes throws(TuyaWireProblem) in
      packet = try form.packet(bytes)
    }
    return packet
  }

  /// What `next(sound:)` has found.
  public enum Found: Sendable, Hashable {
    /// More bytes are needed.
    case nothing
    /// A packet of sound, which was given to the closure.
    case sound
    /// Another packet.
    case packet(TuyaPacket)
  }

  /// The next packet, as `next`. In the dialects v2x a packet of sound without attributes, which is every one but the first of a stream, asks
  /// for no memory where it is one frame: its head and data are given to a closure.
  /// - Parameter sound: called at most once; it must not keep the bytes.
  public mutating func next(
    sound: (TuyaMediaHead, Span<UInt8>) -> Void
  ) throws(TuyaWireProblem) -> Found {
    var found = Found.nothing
    _ = try step { form, bytes throws(TuyaWireProblem) in
      let layout = try form.layout(bytes)
      guard layout.type == .audio, layout.attributes.isEmpty else {
        found = .packet(try form.packet(bytes))
        return
      }
      let payload = bytes.extracting(layout.payload)
      let (head, start) = try form.head(.audio, payload)
      sound(head, payload.extracting(start...))
      found = .sound
    }
    return found
  }

  // MARK: Frames

  /// Reads frames up to the end of a packet, and gives its bytes to the closure. False when more bytes are needed.
  private mutating func step(
    _ read: (TuyaPacketForm, Span<UInt8>) throws(TuyaWireProblem) -> Void
  ) throws(TuyaWireProblem) -> Bool {
    if let problem { throw problem }
    do throws(TuyaWireProblem) {
      try proveHello()
      while let frame = try nextFrame() {
        if let fragment = try whole(frame) {
          switch fragment {
          case .here(let range): try read(framing.form, pending.span.extracting(range))
          case .apart(let bytes): try read(framing.form, bytes.span)
          }
          return true
        }
      }
      return false
    } catch {
      problem = error
      pending = []
      parts = nil
      unproven = nil
      start = 0
      throw error
    }
  }

  /// A frame whose signature and number are right.
  private struct Frame {
    var fragment: TuyaFragment
    /// Its body in `pending`, still encrypted in v1.
    var body: Range<Int>
    /// The initialization vector in v1; empty: there is none.
    var iv: Range<Int>
    var isEncrypted: Bool
    /// Where it ends, in `pending`.
    var end: Int
  }

  /// The bytes of a complete packet: in `pending`, or put together.
  private enum Whole {
    case here(Range<Int>)
    case apart([UInt8])
  }

  private mutating func nextFrame() throws(TuyaWireProblem) -> Frame? {
    guard start < pending.count else { return nil }
    // Refused with its first byte: what another service sends may never have the length of a head.
    let first = framing.dialect == .v1 ? pending[start] : pending[start] & 0x3F
    guard first == TuyaFrameHead.mark(framing.dialect) else {
      throw TuyaWireProblem(
        .badVersion, "a frame begins with \(pending[start]); check the dialect")
    }
    guard pending.count - start >= TuyaFrameHead.bytes else { return nil }
    let frame = framing.dialect == .v1 ? try oldFrame() : try frame()
    guard let frame else { return nil }
    let number = UInt16(pending[start + 1]) << 8 | UInt16(pending[start + 2])
    guard number == sequence else {
      throw TuyaWireProblem(.seqOrder, "frame \(number) comes where \(sequence) is due")
    }
    sequence = TuyaFrameHead.next(sequence)
    expectsHello = false
    return frame
  }

  private mutating func frame() throws(TuyaWireProblem) -> Frame? {
    let length = Int(pending[start + 3]) << 8 | Int(pending[start + 4])
    let body = start + TuyaFrameHead.bytes
    let fragment = TuyaFragment(rawValue: pending[start] >> 6) ?? .whole
    if expectsHello && fragment == .whole && length > 0 && pending.count == body { return nil }
    let isHello = expectsHello && fragment == .whole && length > 0 && Self.isHello(pending[body])
    let trailer = isHello ? 0 : framing.trailerBytes
    guard length >= trailer else {
      throw TuyaWireProblem(.shortLength, "a frame has \(length) bytes, and its signature \(trailer)")
    }
    guard length <= framing.largestLength else {
      throw TuyaWireProblem(
        .oversized, "a frame has \(length) bytes; \(framing.largestLength) are accepted")
    }
    guard pending.count - body >= length else { return nil }
    if trailer > 0 { try verify(start..<body + length - trailer, trailer) }
    return Frame(
      fragment: fragment, body: body..<body + length - trailer, iv: 0..<0, isEncrypted: false,
      end: body + length)
  }

  private mutating func oldFrame() throws(TuyaWireProblem) -> Frame? {
    let kind = pending[start + 3]
    let hasIV = kind & 1 == 1
    let level = kind >> 1 & 0x1F
    let isHello = expectsHello && level == 0
    let fragment = TuyaFragment(rawValue: kind >> 6) ?? .whole
    guard isHello ? fragment == .whole : level == framing.security.rawValue else {
      throw TuyaWireProblem(
        .badSecurityLevel, "a frame has the security level \(level) instead of \(framing.security.rawValue)")
    }
    if !isHello, fragment == .whole || fragment == .first, !hasIV {
      throw TuyaWireProblem(.ivMissing, "a frame that begins a packet has no initialization vector")
    }
    let lengthAt = start + TuyaFrameHead.bytes + (hasIV ? TuyaFrameHead.ivBytes : 0)
    guard pending.count - lengthAt >= TuyaFrameHead.lengthBytes else { return nil }
    let body = lengthAt + TuyaFrameHead.lengthBytes
    let length = TuyaPacketForm.number(pending.span, lengthAt, TuyaFrameHead.lengthBytes)
    let trailer = framing.trailerBytes
    guard length >= trailer else {
      throw TuyaWireProblem(.shortLength, "a frame has \(length) bytes, and its signature \(trailer)")
    }
    guard length <= framing.largestLength else {
      throw TuyaWireProblem(
        .oversized, "a frame has \(length) bytes; \(framing.largestLength) are accepted")
    }
    guard pending.count - body >= length else { return nil }
    let end = body + length - trailer
    if isHello {
      guard body < end, Self.isHello(pending[body]) else {
        throw TuyaWireProblem(.badSecurityLevel, "a frame is not encrypted, and holds no hello")
      }
      if !isSigned(pending.span.extracting(start..<end + trailer), trailer) {
        unproven = Array(pending[start..<end + trailer])
      }
    } else {
      try verify(start..<end, trailer)
    }
    let ivStart = start + TuyaFrameHead.bytes
    return Frame(
      fragment: fragment, body: body..<end,
      iv: hasIV ? ivStart..<ivStart + TuyaFrameHead.ivBytes : 0..<0, isEncrypted: !isHello,
      end: end + trailer)
  }

  private static func isHello(_ first: UInt8) -> Bool {
    first >> 1 == TuyaPacketType.clientHello.rawValue
  }

  /// True for a frame with the right signature behind it.
  private func isSigned(_ bytes: Span<UInt8>, _ trailer: Int) -> Bool {
    let end = bytes.count - trailer
    var code = InlineArray<32, UInt8>(repeating: 0)
    var target = code.mutableSpan
    TuyaFrameHead.sign(self.code, bytes.extracting(0..<end), to: &target)
    return ConstantTime.areEqual(code.span.extracting(0..<trailer), bytes.extracting(end...))
  }

  /// Checks the hello again, with the keys that it has determined.
  private mutating func proveHello() throws(TuyaWireProblem) {
    guard let hello = unproven else { return }
    guard isSigned(hello.span, framing.trailerBytes) else {
      throw TuyaWireProblem(.signMismatch, "the signature of the hello is wrong; check the local key")
    }
    unproven = nil
  }

  private func verify(_ range: Range<Int>, _ trailer: Int) throws(TuyaWireProblem) {
    guard isSigned(pending.span.extracting(range.lowerBound..<range.upperBound + trailer), trailer) else {
      throw TuyaWireProblem(
        .signMismatch, "the signature of a frame is wrong; check the local key and the sign level")
    }
  }

  // MARK: Fragments

  /// Takes a frame out of `pending`. Nil: it does not complete a packet.
  private mutating func whole(_ frame: Frame) throws(TuyaWireProblem) -> Whole? {
    let isBegun = parts != nil
    switch frame.fragment {
    case .whole, .first:
      guard !isBegun else {
        throw TuyaWireProblem(.fragOrder, "a packet begins before the fragments of another have ended")
      }
    case .middle, .last:
      guard isBegun else {
        throw TuyaWireProblem(.fragOrder, "a fragment belongs to no packet")
      }
    }
    defer { start = frame.end }
    if frame.fragment == .whole && !frame.isEncrypted {
      guard frame.body.count <= framing.mostPacketBytes else { throw tooLarge(frame.body.count) }
      return .here(frame.body)
    }
    let body = try clear(frame)
    guard (parts?.count ?? 0) + body.count <= framing.mostPacketBytes else {
      throw tooLarge((parts?.count ?? 0) + body.count)
    }
    switch frame.fragment {
    case .whole: return .apart(body)
    case .first: parts = body
    case .middle: parts?.append(contentsOf: body)
    case .last:
      let whole = (parts ?? []) + body
      parts = nil
      return .apart(whole)
    }
    return nil
  }

  private func tooLarge(_ count: Int) -> TuyaWireProblem {
    TuyaWireProblem(
      .oversized, "a packet has \(count) bytes at least; \(framing.mostPacketBytes) are accepted")
  }

  private mutating func clear(_ frame: Frame) throws(TuyaWireProblem) -> [UInt8] {
    let body = Array(pending[frame.body])
    guard frame.isEncrypted else { return body }
    if !frame.iv.isEmpty { iv = Array(pending[frame.iv]) }
    return try TuyaFrameCipher(security: framing.security, key: framing.keys.crypt).open(
      body, iv: iv, direction)
  }
}
