extension RTPCodec {
  /// How well two codecs fit.
  enum Match: Comparable {
    /// One side could not decode what the other sends.
    case none
    /// Different words for what implementations treat alike.
    case near
    /// The same.
    case exact
  }

  /// Compares with a codec of the peer: name, clock rate and channels, and with H.264 profile and packetization mode too.
  func match(_ other: RTPCodec) -> Match {
    guard name.isEqualIgnoringCase(other.name), clockRate == other.clockRate else { return .none }
    // Opus has two channels in every description; some devices leave them out, which has no effect on packets.
    if name.isEqualIgnoringCase("opus") { return .exact }
    guard channels == other.channels else { return .none }
    if name.isEqualIgnoringCase("H264") { return h264Match(other) }
    return .exact
  }

  private func h264Match(_ other: RTPCodec) -> Match {
    // Without it, mode 0 applies. Source: RFC 6184 section 8.1.
    let mode = parameters["packetization-mode"] ?? "0"
    guard mode == other.parameters["packetization-mode"] ?? "0",
      let own = H264Profile(parameters), let its = H264Profile(other.parameters)
    else { return .none }
    if own.kind == its.kind { return .exact }
    return own.isBaseline && its.isBaseline ? .near : .none
  }

  /// This codec of ours as an answer to one of the peer: its payload types, our parameters, what both report.
  func answering(_ offered: RTPCodec) -> RTPCodec {
    var codec = self
    codec.payloadType = offered.payloadType
    codec.rtxPayloadType = rtxPayloadType == nil ? nil : offered.rtxPayloadType
    codec.feedback = offered.feedback.filter { feedback.contains($0) }
    if name.isEqualIgnoringCase("H264") {
      codec.parameters = H264Profile.answer(parameters, to: offered.parameters)
    }
    return codec
  }
}

/// The profile and level of H.264: `profile-level-id`. Source: RFC 6184 section 8.1, table 5.
public struct H264Profile: Sendable, Hashable {
  /// The tools a stream may use.
  public enum Kind: Sendable, Hashable {
    /// What WebRTC requires.
    case constrainedBaseline
    /// With slice groups, which nobody uses.
    case baseline
    /// With B pictures and CABAC.
    case main
    /// With 8x8 transforms.
    case high
    /// High without B pictures.
    case constrainedHigh
    /// Another, by `profile_idc` and the constraint flags.
    case other(UInt8, UInt8)
  }

  /// `profile_idc`, as in the text.
  public var profile: UInt8
  /// `profile-iop`: the constraint flags.
  public var constraints: UInt8
  /// Ten times the level: 31 is 3.1.
  public var level: UInt8

  /// Reads six digits; nil: there are others.
  public init?(parsing text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 6 else { return nil }
    let values = digits.compactMap { SDPHex.value($0) }
    guard values.count == 6 else { return nil }
    profile = values[0] << 4 | values[1]
    constraints = values[2] << 4 | values[3]
    level = values[4] << 4 | values[5]
  }

  /// Reads the parameters of a codec. Without a profile, constrained baseline at level 3.1 applies, as in browsers; RFC 6184 would have
  /// baseline at level 1.
  init?(_ parameters: FormatParameters) {
    self.init(parsing: parameters["profile-level-id"] ?? "42e01f")
  }

  /// The digits of `profile-level-id`, in lower case.
  public var text: String {
    "\(SDPHex.text(profile))\(SDPHex.text(constraints))\(SDPHex.text(level))".lowercased()
  }

  /// The tools. Several spellings mean constrained baseline: 42 with the second flag, 4D with the first, 58 with both.
  public var kind: Kind {
    switch (profile, constraints) {
    case (0x42, let flags) where flags & 0x4F == 0x40: .constrainedBaseline
    case (0x4D, let flags) where flags & 0x8F == 0x80: .constrainedBaseline
    case (0x58, let flags) where flags & 0xCF == 0xC0: .constrainedBaseline
    case (0x42, let flags) where flags & 0x4F == 0: .baseline
    case (0x58, let flags) where flags & 0xCF == 0x80: .baseline
    case (0x4D, let flags) where flags & 0xAF == 0: .main
    case (0x64, 0): .high
    case (0x64, 0x0C): .constrainedHigh
    default: .other(profile, constraints)
    }
  }

  /// Baseline, constrained or not: encoders of WebRTC write the same stream for both.
  var isBaseline: Bool { kind == .constrainedBaseline || kind == .baseline }

  /// The parameters of an answer: profile and mode of the offer; the level is the lower of both unless both allow different ones.
  /// Source: RFC 6184 section 8.2.2.
  static func answer(_ own: FormatParameters, to offered: FormatParameters) -> FormatParameters {
    var answer = own
    guard var profile = H264Profile(offered), let ours = H264Profile(own) else { return answer }
    let key = "level-asymmetry-allowed"
    let isAsymmetric = own[key] == "1" && offered[key] == "1"
    profile.level = isAsymmetric ? ours.level : min(ours.level, profile.level)
    answer["profile-level-id"] = profile.text
    if !isAsymmetric { answer[key] = nil }
    return answer
  }
}
