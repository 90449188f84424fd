/// The format of sound: attribute 80 in the dialects v2x, 81 to 88 in v1.
public struct TuyaAudioParameters: Sendable, Hashable {
  /// How sound is encoded. Source: the vendor's list of codecs.
  public enum Codec: UInt16, Sendable, Hashable, CaseIterable {
    /// Linear samples.
    case pcm = 101
    /// MPEG-1 and MPEG-2 layer III.
    case mp3 = 109
    /// Opus, RFC 6716.
    case opus = 111
    /// Adaptive differential samples.
    case adpcm = 100
    /// AAC without a container.
    case aacRaw = 102
    /// AAC in ADTS frames.
    case aacADTS = 103
    /// AAC in LATM.
    case aacLATM = 104
    /// G.711, mu-law.
    case g711u = 105
    /// G.711, A-law.
    case g711a = 106
    /// G.726.
    case g726 = 107
    /// Speex.
    case speex = 108
    /// G.722.
    case g722 = 110
  }

  /// The number of the codec: that of a `Codec`, or another.
  public var codecNumber: UInt16
  /// Channels.
  public var channels: Int
  /// Bits of a sample.
  public var bits: Int
  /// Samples per second.
  public var rate: Int
  /// 0 for none, 1 for Ogg.
  public var container = 0
  /// Bits per second; 0: not said.
  public var bitRate = 0
  /// Milliseconds of a frame; 0: not said.
  public var frameMilliseconds = 0
  /// Bytes of a frame; 0: not said.
  public var frameBytes = 0
  /// Four numbers are written, or eight.
  public var isLong = false

  /// Creates a format; with a bit rate or a frame, eight numbers are written.
  public init(
    _ codec: Codec, channels: Int = 1, bits: Int = 16, rate: Int = 16_000, container: Int = 0,
    bitRate: Int = 0, frameMilliseconds: Int = 0, frameBytes: Int = 0
  ) {
    codecNumber = codec.rawValue
    self.channels = channels
    self.bits = bits
    self.rate = rate
    self.container = container
    self.bitRate = bitRate
    self.frameMilliseconds = frameMilliseconds
    self.frameBytes = frameBytes
    isLong = bitRate > 0 || frameMilliseconds > 0 || frameBytes > 0
  }

  /// The codec; nil: one that is not known.
  public var codec: Codec? { Codec(rawValue: codecNumber) }

  /// Reads the numbers of attribute 80: four at least, eight at most.
  /// - Throws: `paramsBad`.
  public init(parsing text: String) throws(TuyaWireProblem) {
    let numbers = try TuyaNumbers.read(text, atLeast: 4, of: "audio")
    guard let codec = UInt16(exactly: numbers[0]) else {
      throw TuyaWireProblem(.paramsBad, "the audio codec \(numbers[0]) is no number of 16 bits")
    }
    codecNumber = codec
    (channels, bits, rate) = (numbers[1], numbers[2], numbers[3])
    func more(_ index: Int) -> Int { index < numbers.count ? numbers[index] : 0 }
    (container, bitRate, frameMilliseconds, frameBytes) = (more(4), more(5), more(6), more(7))
    isLong = numbers.count >= 8
  }

  /// The text of attribute 80.
  public var text: String {
    let short = "\(codecNumber) \(channels) \(bits) \(rate)"
    return isLong ? "\(short) \(container) \(bitRate) \(frameMilliseconds) \(frameBytes)" : short
  }

  /// Adds the attributes of a dialect.
  public func add(to attributes: inout TuyaAttributes, _ dialect: TuyaDialect) {
    guard dialect == .v1 else { return attributes.add(.audioParameters, text) }
    let values = [(81, Int(codecNumber)), (82, rate), (83, channels), (84, bits)]
    for (id, value) in values { attributes.add(TuyaAttributeID(rawValue: UInt16(id)), UInt64(value)) }
  }

  /// Reads the attributes of a packet; nil: it has none.
  public init?(_ attributes: TuyaAttributes) throws(TuyaWireProblem) {
    if let text = try TuyaNumbers.text(.audioParameters, attributes) {
      self = try TuyaAudioParameters(parsing: text)
      return
    }
    guard let codec = TuyaNumbers.number(81, attributes) else { return nil }
    self.init(.pcm)
    codecNumber = UInt16(truncatingIfNeeded: codec)
    rate = TuyaNumbers.number(82, attributes) ?? 16_000
    channels = TuyaNumbers.number(83, attributes) ?? 1
    bits = TuyaNumbers.number(84, attributes) ?? 16
    frameBytes = TuyaNumbers.number(85, attributes) ?? 0
    container = TuyaNumbers.number(87, attributes) ?? 0
    bitRate = TuyaNumbers.number(88, attributes) ?? 0
    frameMilliseconds = TuyaNumbers.number(89, attributes) ?? 0
  }
}

/// The format of a video: attribute 70 in the dialects v2x, 71 to 75 in v1.
public struct TuyaVideoParameters: Sendable, Hashable {
  /// The number of Motion JPEG in the vendor's list of codecs.
  public static let mjpeg = 3

  /// The codec: 0 MPEG-4, 1 H.263, 2 H.264, 3 Motion JPEG, 4 H.265.
  public var codec: Int
  /// Pixels.
  public var width, height: Int
  /// Frames per second.
  public var fps: Int
  /// Ticks per second of its clock.
  public var rate: Int

  /// Creates a format.
  public init(codec: Int, width: Int, height: Int, fps: Int, rate: Int = 90_000) {
    self.codec = codec
    self.width = width
    self.height = height
    self.fps = fps
    self.rate = rate
  }

  /// The text of attribute 70.
  public var text: String { "\(codec) \(width) \(height) \(fps) \(rate)" }

  /// Adds the attributes of a dialect.
  public func add(to attributes: inout TuyaAttributes, _ dialect: TuyaDialect) {
    guard dialect == .v1 else { return attributes.add(.videoParameters, text) }
    for (id, value) in [(71, codec), (72, rate), (73, width), (74, height), (75, fps)] {
      attributes.add(TuyaAttributeID(rawValue: UInt16(id)), UInt64(value))
    }
  }

  /// Reads the attributes of a packet; nil: it has none.
  public init?(_ attributes: TuyaAttributes) throws(TuyaWireProblem) {
    if let text = try TuyaNumbers.text(.videoParameters, attributes) {
      let numbers = try TuyaNumbers.read(text, atLeast: 5, of: "video")
      self.init(
        codec: numbers[0], width: numbers[1], height: numbers[2], fps: numbers[3], rate: numbers[4])
      return
    }
    guard let codec = TuyaNumbers.number(71, attributes) else { return nil }
    self.init(
      codec: codec, width: TuyaNumbers.number(73, attributes) ?? 0,
      height: TuyaNumbers.number(74, attributes) ?? 0, fps: TuyaNumbers.number(75, attributes) ?? 0,
      rate: TuyaNumbers.number(72, attributes) ?? 0)
  }
}

/// How the data of an image or a file are given.
public enum TuyaPayloadForm: Int, Sendable, Hashable, CaseIterable {
  /// As they are.
  case raw = 0
  /// In Base64, RFC 4648 section 4.
  case base64 = 1
  /// The address where they are.
  case url = 2
}

/// The format of an image: attribute 90 in the dialects v2x, 91 to 94 in v1.
public struct TuyaImageParameters: Sendable, Hashable {
  /// How the data are given: the number of a `TuyaPayloadForm`, or another.
  public var payload: Int
  /// 1 JPEG, 2 PNG.
  public var format: Int
  /// Pixels.
  public var width, height: Int

  /// Creates a format.
  public init(payload: TuyaPayloadForm = .raw, format: Int, width: Int, height: Int) {
    self.payload = payload.rawValue
    self.format = format
    self.width = width
    self.height = height
  }

  /// The text of attribute 90.
  public var text: String { "\(payload) \(format) \(width) \(height)" }

  /// Adds the attributes of a dialect.
  public func add(to attributes: inout TuyaAttributes, _ dialect: TuyaDialect) {
    guard dialect == .v1 else { return attributes.add(.imageParameters, text) }
    for (id, value) in [(91, format), (92, width), (93, height)] {
      attributes.add(TuyaAttributeID(rawValue: UInt16(id)), UInt64(value))
    }
    // The vendor's client leaves the attribute out for raw data.
    if payload != 0 { attributes.add(TuyaAttributeID(rawValue: 94), UInt64(payload)) }
  }

  /// Reads the attributes of a packet; nil: it has none.
  public init?(_ attributes: TuyaAttributes) throws(TuyaWireProblem) {
    self.init(format: 0, width: 0, height: 0)
    if let text = try TuyaNumbers.text(.imageParameters, attributes) {
      let numbers = try TuyaNumbers.read(text, atLeast: 4, of: "image")
      (payload, format, width, height) = (numbers[0], numbers[1], numbers[2], numbers[3])
      return
    }
    guard let format = TuyaNumbers.number(91, attributes) else { return nil }
    self.format = format
    width = TuyaNumbers.number(92, attributes) ?? 0
    height = TuyaNumbers.number(93, attributes) ?? 0
    payload = TuyaNumbers.number(94, attributes) ?? 0
  }
}

/// The format of a file: attribute 100 in the dialects v2x, 101 to 103 in v1.
public struct TuyaFileParameters: Sendable, Hashable {
  /// How the data are given: the number of a `TuyaPayloadForm`, or another.
  public var payload: Int
  /// 1 MP4, 2 Opus in Ogg, 3 PDF, 4 JSON, 5 a log, 6 a map.
  public var format: Int
  /// The file's name.
  public var name: String

  /// Creates a format.
  public init(payload: TuyaPayloadForm = .raw, format: Int, name: String) {
    self.payload = payload.rawValue
    self.format = format
    self.name = name
  }

  /// The text of attribute 100.
  public var text: String { "\(payload) \(format) \(name)" }

  /// Adds the attributes of a dialect.
  public func add(to attributes: inout TuyaAttributes, _ dialect: TuyaDialect) {
    guard dialect == .v1 else { return attributes.add(.fileParameters, text) }
    attributes.add(TuyaAttributeID(rawValue: 101), UInt64(format))
    attributes.add(TuyaAttributeID(rawValue: 102), name)
    if payload != 0 { attributes.add(TuyaAttributeID(rawValue: 103), UInt64(payload)) }
  }

  /// Reads the attributes of a packet; nil: it has none.
  public init?(_ attributes: TuyaAttributes) throws(TuyaWireProblem) {
    self.init(format: 0, name: "")
    if let text = try TuyaNumbers.text(.fileParameters, attributes) {
      // A name may have spaces.
      let words = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
      guard words.count == 3, let payload = Int(words[0]), let format = Int(words[1]) else {
        throw TuyaWireProblem(.paramsBad, "the file parameters are not two numbers and a name")
      }
      (self.payload, self.format, name) = (payload, format, String(words[2]))
      return
    }
    guard let format = TuyaNumbers.number(101, attributes) else { return nil }
    self.format = format
    name = attributes.text(TuyaAttributeID(rawValue: 102)) ?? ""
    payload = TuyaNumbers.number(103, attributes) ?? 0
  }
}

/// Numbers with spaces between.
enum TuyaNumbers {
  /// The most numbers that are read; a newer peer may add some.
  private static let most = 16

  static func read(_ text: String, atLeast count: Int, of what: String) throws(TuyaWireProblem) -> [Int] {
    let words = text.split(separator: " ", maxSplits: most)
    let numbers = words.compactMap { word in
      word.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        ? UInt32(word).map { Int($0) } : nil
    }
    guard numbers.count == words.count, numbers.count >= count else {
      throw TuyaWireProblem(
        .paramsBad, "the \(what) parameters are not \(count) numbers with spaces between")
    }
    return numbers
  }

  /// A text; nil: there is none.
  static func text(
    _ id: TuyaAttributeID, _ attributes: TuyaAttributes
  ) throws(TuyaWireProblem) -> String? {
    guard attributes.bytes(id) != nil else { return nil }
    guard let text = attributes.text(id) else {
      throw TuyaWireProblem(.paramsBad, "the parameters of attribute \(id.rawValue) are no UTF-8")
    }
    return text
  }

  static func number(_ id: UInt16, _ attributes: TuyaAttributes) -> Int? {
    attributes.integer(TuyaAttributeID(rawValue: id)).flatMap { Int(exactly: $0) }
  }
}
