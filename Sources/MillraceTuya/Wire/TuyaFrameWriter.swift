internal import MillraceCrypto

/// Writes the packets of one direction of a connection as frames.
///
/// One value for each connection; packets must go out in the order in which they were written.
public struct TuyaFrameWriter: Sendable {
  private var framing: TuyaFraming
  private let direction: TuyaDirection
  private var code: ShortHMAC
  private var sequence: UInt16
  /// The initialization vector of the next packet of v1.
  private let makeIV: @Sendable () -> [UInt8]

  /// - Parameters:
  ///   - framing: of the connection.
  ///   - direction: which way the packets go.
  ///   - sequence: the number of the first frame.
  public init(_ framing: TuyaFraming, _ direction: TuyaDirection, sequence: UInt16 = 1) {
    // The vendor's client keeps one vector for the whole connection, which gives a nonce away.
    self.init(framing, direction, sequence: sequence) {
      var source = SystemRandomNumberGenerator()
      return (0..<TuyaFrameHead.ivBytes).map { _ in UInt8.random(in: 0...255, using: &source) }
    }
  }

  /// - Parameter iv: gives 16 bytes for each packet of v1.
  init(
    _ framing: TuyaFraming, _ direction: TuyaDirection, sequence: UInt16,
    iv: @escaping @Sendable () -> [UInt8]
  ) {
    self.framing = framing
    self.direction = direction
    self.sequence = sequence
    code = ShortHMAC(key: framing.keys.sign)
    makeIV = iv
  }

  /// Uses other keys for the packets that follow.
  public mutating func use(_ keys: TuyaKeys) {
    framing.keys = keys
    code = ShortHMAC(key: keys.sign)
  }

  /// Appends the frames of a packet.
  /// - Throws: `oversized`: an attribute or the data of an event do not fit their length; `mediaDecrypt`: a picture of v22 without a key.
  ///   Nothing was appended then.
  public mutating func append(_ packet: TuyaPacket, to buffer: inout [UInt8]) throws(TuyaWireProblem) {
    if packet.type == .audio, packet.attributes.isEmpty, case .media(let head, let data) = packet.content,
      appendWholeSound(head, Span(), data.span, to: &buffer)
    {
      return
    }
    let form = framing.form
    var packet = packet
    complete(&packet)
    let payload = try form.payload(packet)
    let isCut = payload.count + form.headBytes(packet) > framing.largestPiece
    if isCut && direction == .down && framing.dialect != .v1 { announce(payload.count, in: &packet) }
    var bytes: [UInt8] = []
    try form.appendHead(packet, payload: payload.count, to: &bytes)
    // Attributes are never cut.
    let head = bytes.count
    bytes += payload
    let piece = framing.largestPiece
    guard head <= piece else {
      throw TuyaWireProblem(
        .oversized, "the attributes of a packet have \(head) bytes; \(piece) fit a frame")
    }
    var cuts = Array(stride(from: piece, to: bytes.count, by: piece))
    cuts.append(bytes.count)
    try append(bytes, cutAt: cuts, isHello: packet.type == .clientHello, to: &buffer)
  }

  /// Gives a picture of v22 its initialization vector, where it has none.
  private func complete(_ packet: inout TuyaPacket) {
    guard framing.dialect == .v22, packet.type == .image || packet.type == .video,
      case .media(var head, let data) = packet.content, head.iv.isEmpty
    else { return }
    head.iv = makeIV()
    packet.content = .media(head, data)
  }

  /// A client of the vendor's takes the length of a packet that the cloud has cut from attribute 9 alone.
  private func announce(_ count: Int, in packet: inout TuyaPacket) {
    guard packet.attributes.bytes(.payloadLength) == nil else { return }
    var attributes = TuyaAttributes()
    attributes.add(.payloadLength, UInt64(count))
    for entry in packet.attributes.entries { attributes.append(entry) }
    packet.attributes = attributes
  }

  /// Appends the frames of a packet whose bytes are cut behind these places.
  mutating func append(
    _ bytes: [UInt8], cutAt cuts: [Int], isHello: Bool, to buffer: inout [UInt8]
  ) throws(TuyaWireProblem) {
    let iv = framing.dialect == .v1 && !isHello ? makeIV() : []
    var start = 0
    var frames: [[UInt8]] = []
    for (index, end) in cuts.enumerated() {
      let (isFirst, isLast) = (index == 0, index == cuts.count - 1)
      let fragment: TuyaFragment =
        isFirst ? (isLast ? .whole : .first) : (isLast ? .last : .middle)
      let piece = Array(bytes[start..<end])
      frames.append(
        framing.dialect == .v1
          ? try oldFrame(piece, fragment, iv: iv, isHello: isHello) : frame(piece, fragment, isHello: isHello)
      )
      start = end
      sequence = TuyaFrameHead.next(sequence)
    }
    for frame in frames { buffer += frame }
  }

  private func frame(_ body: [UInt8], _ fragment: TuyaFragment, isHello: Bool) -> [UInt8] {
    var frame: [UInt8] = []
    let trailer = isHello ? 0 : framing.trailerBytes
    appendHead(fragment, body.count + trailer, to: &frame)
    frame += body
    sign(from: 0, trailer, &frame)
    return frame
  }

  private func oldFrame(
    _ body: [UInt8], _ fragment: TuyaFragment, iv: [UInt8], isHello: Bool
  ) throws(TuyaWireProblem) -> [UInt8] {
    let hasIV = !isHello && (fragment == .whole || fragment == .first)
    let cipher = TuyaFrameCipher(security: framing.security, key: framing.keys.crypt)
    let bytes = isHello ? body : try cipher.seal(body, iv: iv, direction)
    let level = isHello ? 0 : framing.security.rawValue
    var frame = [TuyaFrameHead.mark(.v1)]
    TuyaPacketForm.append(Int(sequence), 2, to: &frame)
    frame += [fragment.rawValue << 6 | level << 1 | (hasIV ? 1 : 0), 0]
    if hasIV { frame += iv }
    TuyaPacketForm.append(bytes.count + framing.trailerBytes, TuyaFrameHead.lengthBytes, to: &frame)
    frame += bytes
    sign(from: 0, framing.trailerBytes, &frame)
    return frame
  }

  private func appendHead(_ fragment: TuyaFragment, _ length: Int, to buffer: inout [UInt8]) {
    buffer.append(fragment.rawValue << 6 | TuyaFrameHead.mark(framing.dialect))
    TuyaPacketForm.append(Int(sequence), 2, to: &buffer)
    TuyaPacketForm.append(length, 2, to: &buffer)
  }

  /// Appends the signature of the frame that begins at `start` and ends with the buffer.
  private func sign(from start: Int, _ trailer: Int, _ buffer: inout [UInt8]) {
    guard trailer > 0 else { return }
    var code = InlineArray<32, UInt8>(repeating: 0)
    var target = code.mutableSpan
    TuyaFrameHead.sign(self.code, buffer.span.extracting(start..<buffer.count), to: &target)
    TuyaPacketForm.append(code.span.extracting(0..<trailer), to: &buffer)
  }

  // MARK: Sound

  /// Appends a packet of sound. In the dialects v2x it asks for no memory where the buffer has room, and the packet fits a frame.
  /// - Parameters:
  ///   - head: of the data.
  ///   - parameters: the text of attribute 80, in the first or only packet; empty: none.
  ///   - data: the sound.
  ///   - buffer: receives the frame.
  /// - Throws: as `append`.
  public mutating func appendSound(
    _ head: TuyaMediaHead, parameters: Span<UInt8> = Span(), data: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(TuyaWireProblem) {
    guard !appendWholeSound(head, parameters, data, to: &buffer) else { return }
    var list = TuyaAttributes()
    if !parameters.isEmpty {
      let text = String(decoding: TuyaPacketForm.array(parameters), as: UTF8.self)
      try TuyaAudioParameters(parsing: text).add(to: &list, framing.dialect)
    }
    try append(TuyaPacket(.audio, list, .media(head, TuyaPacketForm.array(data))), to: &buffer)
  }

  /// Appends a packet of sound without heap requests, where it fits a frame that is not encrypted; false elsewhere.
  private mutating func appendWholeSound(
    _ head: TuyaMediaHead, _ parameters: Span<UInt8>, _ data: Span<UInt8>, to buffer: inout [UInt8]
  ) -> Bool {
    // Type, attributes with one of them, head.
    let attributes = parameters.isEmpty ? 0 : 4 + parameters.count
    let bytes = 1 + (attributes > 0 ? 4 + attributes : 0) + 8 + data.count
    guard framing.dialect != .v1, bytes <= framing.largestPiece else { return false }
    let start = buffer.count
    let trailer = framing.trailerBytes
    appendHead(.whole, bytes + trailer, to: &buffer)
    buffer.append(TuyaPacketType.audio.rawValue << 1 | (attributes > 0 ? 1 : 0))
    if attributes > 0 {
      TuyaPacketForm.append(attributes, 4, to: &buffer)
      TuyaPacketForm.append(Int(TuyaAttributeID.audioParameters.rawValue), 2, to: &buffer)
      TuyaPacketForm.append(parameters.count, 2, to: &buffer)
      TuyaPacketForm.append(parameters, to: &buffer)
    }
    framing.form.append(head, .audio, data.count, to: &buffer)
    TuyaPacketForm.append(data, to: &buffer)
    sign(from: start, trailer, &buffer)
    sequence = TuyaFrameHead.next(sequence)
    return true
  }
}
