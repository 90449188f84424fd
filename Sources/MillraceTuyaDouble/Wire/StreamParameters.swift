/// What a stream is, as its first packet says.
enum StreamParameters: Sendable, Hashable {
  case audio(AudioParameters)
  case image(payload: Int, format: Int, width: Int, height: Int)
  case video(codec: Int, width: Int, height: Int, fps: Int, rate: Int)
  case file(payload: Int, format: Int, name: String)

  /// The format of sound.
  struct AudioParameters: Sendable, Hashable {
    static let pcm = 101, mp3 = 109, opus = 111
    var codec: Int
    var channels = 1
    var bits = 16
    var rate: Int
    /// 0 raw, 1 Ogg.
    var container = 0
    var bitRate = 0
    /// Milliseconds of a frame, and its bytes.
    var frame = 0, frameBytes = 0
  }

  private static let wrong = WireFault(.badParameters, "the parameters of a stream are not numbers")

  /// Reads them from a packet; nil: it has none.
  init?(_ kind: DataKind, of packet: CloudPacket, isV1: Bool) throws(WireFault) {
    if isV1 {
      self.init(separate: kind, packet)
      return
    }
    guard let id = kind.parameters, let text = packet.text(id) else { return nil }
    let fields = text.split(separator: " ")
    if kind == .file {
      guard fields.count >= 2, let payload = Int(fields[0]), let format = Int(fields[1]) else {
        throw Self.wrong
      }
      self = .file(payload: payload, format: format, name: fields.dropFirst(2).joined(separator: " "))
      return
    }
    var numbers: [Int] = []
    for field in fields {
      guard let number = Int(field) else { throw Self.wrong }
      numbers.append(number)
    }
    switch kind {
    case .audio where numbers.count == 4 || numbers.count == 8:
      var made = AudioParameters(codec: numbers[0], channels: numbers[1], bits: numbers[2], rate: numbers[3])
      if numbers.count == 8 {
        (made.container, made.bitRate) = (numbers[4], numbers[5])
        (made.frame, made.frameBytes) = (numbers[6], numbers[7])
      }
      self = .audio(made)
    case .image where numbers.count == 4:
      self = .image(payload: numbers[0], format: numbers[1], width: numbers[2], height: numbers[3])
    case .video where numbers.count == 5:
      self = .video(
        codec: numbers[0], width: numbers[1], height: numbers[2], fps: numbers[3], rate: numbers[4])
    default: throw WireFault(.badParameters, "\(kind.rawValue): \(numbers.count) parameters")
    }
  }

  /// As v1 has them, each an attribute.
  private init?(separate kind: DataKind, _ packet: CloudPacket) {
    func number(_ id: UInt16) -> Int? { packet.number(id).flatMap { Int(exactly: $0) } }
    switch kind {
    case .audio:
      guard let codec = number(81), let rate = number(82) else { return nil }
      self = .audio(
        AudioParameters(
          codec: codec, channels: number(83) ?? 1, bits: number(84) ?? 16, rate: rate,
          container: number(87) ?? 0, bitRate: number(88) ?? 0, frame: number(89) ?? 0,
          frameBytes: number(85) ?? 0))
    case .image:
      guard let format = number(91) else { return nil }
      self = .image(payload: number(94) ?? 0, format: format, width: number(92) ?? 0, height: number(93) ?? 0)
    case .video:
      guard let codec = number(71) else { return nil }
      self = .video(
        codec: codec, width: number(73) ?? 0, height: number(74) ?? 0, fps: number(75) ?? 0,
        rate: number(72) ?? 0)
    case .file:
      guard let format = number(101) else { return nil }
      self = .file(payload: 0, format: format, name: packet.text(102) ?? "")
    case .text: return nil
    }
  }

  func attributes(isV1: Bool) -> [CloudAttribute] {
    func numbers(_ values: [(UInt16, Int)]) -> [CloudAttribute] {
      values.map { CloudAttribute($0.0, number: $0.1) }
    }
    func text(_ id: UInt16, _ values: [Int]) -> [CloudAttribute] {
      [CloudAttribute(id, values.map(String.init).joined(separator: " "))]
    }
    switch self {
    case .audio(let audio):
      if isV1 {
        var all: [(UInt16, Int)] = [
          (81, audio.codec), (82, audio.rate), (83, audio.channels), (84, audio.bits),
        ]
        if audio.frameBytes > 0 {
          all += [(85, audio.frameBytes), (87, audio.container), (88, audio.bitRate), (89, audio.frame)]
        }
        return numbers(all)
      }
      let short = [audio.codec, audio.channels, audio.bits, audio.rate]
      let more = [audio.container, audio.bitRate, audio.frame, audio.frameBytes]
      return text(80, more.allSatisfy { $0 == 0 } ? short : short + more)
    case .image(let payload, let format, let width, let height):
      return isV1
        ? numbers([(91, format), (92, width), (93, height)]) : text(90, [payload, format, width, height])
    case .video(let codec, let width, let height, let fps, let rate):
      return isV1
        ? numbers([(71, codec), (72, rate), (73, width), (74, height), (75, fps)])
        : text(70, [codec, width, height, fps, rate])
    case .file(let payload, let format, let name):
      return isV1
        ? numbers([(101, format)]) + [CloudAttribute(102, name)]
        : [CloudAttribute(100, "\(payload) \(format) \(name)")]
    }
  }
}
