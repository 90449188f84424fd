/// Which way media flow, seen from the side that wrote the description. Source: RFC 8866 section 6.7.
public enum MediaDirection: String, Sendable, Hashable, CaseIterable {
  /// Both ways.
  case sendReceive = "sendrecv"
  /// From the writer.
  case sendOnly = "sendonly"
  /// To the writer.
  case receiveOnly = "recvonly"
  /// No way.
  case inactive

  /// Creates a direction.
  public init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendReceive : .sendOnly) : (receives ? .receiveOnly : .inactive)
  }

  /// The writer sends.
  public var sends: Bool { self == .sendReceive || self == .sendOnly }
  /// The writer receives.
  public var receives: Bool { self == .sendReceive || self == .receiveOnly }
  /// The same seen from the other side.
  public var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

  /// What either does, seen from the same side.
  public func union(_ other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends || other.sends, receives: receives || other.receives)
  }

  /// What both allow, seen from the same side.
  public func intersection(_ other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
  }
}

/// What a payload type stands for: `a=rtpmap`. Source: RFC 8866 section 6.6.
public struct RTPMap: Sendable, Hashable {
  /// 0 to 127.
  public var payloadType: UInt8
  /// The encoding, for example `opus`; its case has no meaning.
  public var name: String
  /// Ticks per second of the timestamp.
  public var clockRate: Int
  /// Channels of sound; 1 where it is not said.
  public var channels = 1

  init(_ codec: RTPCodec) {
    payloadType = codec.payloadType
    (name, clockRate, channels) = (codec.name, codec.clockRate, codec.channels)
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let payloadType = words.next()?.payloadType, let encoding = words.next() else { return nil }
    let parts = encoding.parts(at: "/")
    guard parts.count == 2 || parts.count == 3, !parts[0].isEmpty,
      let rate = parts[1].decimal(Self.mostClockRate), rate > 0
    else { return nil }
    self.payloadType = payloadType
    (name, clockRate) = (String(parts[0]), Int(rate))
    guard parts.count == 3 else { return }
    guard let channels = parts[2].decimal(255), channels > 0 else { return nil }
    self.channels = Int(channels)
  }

  /// The clock of a timestamp of 32 bits; more would wrap within seconds.
  private static let mostClockRate: UInt64 = 100_000_000

  var text: String { "\(payloadType) \(name)/\(clockRate)\(channels > 1 ? "/\(channels)" : "")" }
}

/// The parameters of a payload type: `a=fmtp`. Source: RFC 8866 section 6.15.
public struct FormatParameters: Sendable, Hashable {
  /// A key, and its value.
  public struct Pair: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value; nil: the key stands alone, as `0-16` of telephone events.
    public var value: String?
  }

  /// The parameters as they stand in the text, for example `minptime=10;useinbandfec=1`.
  public var raw: String

  /// Creates parameters; empty: none.
  public init(_ raw: String = "") { self.raw = raw }

  /// The pairs, in their order.
  public var pairs: [Pair] {
    raw[...].parts(at: ";").compactMap { part in
      let (key, value) = part.trimmed.halves(at: "=")
      return key.isEmpty ? nil : Pair(key: String(key.trimmed), value: value.map { String($0.trimmed) })
    }
  }

  /// The value of a key, whose case has no meaning; nil: it is missing or stands alone. Setting nil removes it.
  public subscript(key: String) -> String? {
    get { pairs.first { $0.key.isEqualIgnoringCase(key) }?.value }
    set {
      var list = pairs
      let place = list.firstIndex { $0.key.isEqualIgnoringCase(key) }
      switch (place, newValue) {
      case (let place?, let value?): list[place].value = value
      case (let place?, nil): list.remove(at: place)
      case (nil, let value?): list.append(Pair(key: key, value: value))
      case (nil, nil): return
      }
      raw = list.map { pair in pair.value.map { "\(pair.key)=\($0)" } ?? pair.key }.joined(separator: ";")
    }
  }
}

/// What a receiver reports of a payload type: `a=rtcp-fb`. Source: RFC 4585 section 4.2.
public struct RTCPFeedback: Sendable, Hashable {
  /// 0 to 127; nil: all of the medium.
  public var payloadType: UInt8?
  /// The kind.
  public var kind: Kind

  /// A kind of report, as it stands in the text.
  public struct Kind: Sendable, Hashable {
    /// For example `nack pli`.
    public var text: String

    /// Creates a kind.
    public init(_ text: String) { self.text = text }

    /// Lost packets are requested again. RFC 4585 section 6.2.1.
    public static let nack = Kind("nack")
    /// A whole picture is requested after losses. RFC 4585 section 6.3.1.
    public static let pictureLoss = Kind("nack pli")
    /// A whole picture is requested, for a new viewer for example. RFC 5104 section 4.3.1.
    public static let fullIntra = Kind("ccm fir")
    /// The receiver estimates the bit rate. draft-alvestrand-rmcat-remb.
    public static let remb = Kind("goog-remb")
    /// The receiver reports the arrival of every packet. draft-holmer-rmcat-transport-wide-cc-extensions.
    public static let transportCC = Kind("transport-cc")
  }

  init(payloadType: UInt8?, _ kind: Kind) {
    self.payloadType = payloadType
    self.kind = kind
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let format = words.next() else { return nil }
    payloadType = format.payloadType
    guard payloadType != nil || format == "*" else { return nil }
    let parts = words.all()
    guard !parts.isEmpty else { return nil }
    kind = Kind(parts.joined(separator: " "))
  }

  var text: String { "\(payloadType.map { String($0) } ?? "*") \(kind.text)" }
}
