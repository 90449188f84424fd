/// The integers that a contract accepts: any, a list, or a range.
public enum ValueSet: Sendable, Hashable, CustomStringConvertible {
  /// Every number.
  case any
  /// The numbers of a list.
  case oneOf([Int])
  /// The numbers of a range, its ends included.
  case range(ClosedRange<Int>)

  /// One value only.
  public static func only(_ value: Int) -> ValueSet { .oneOf([value]) }

  /// True when the value is in the set.
  public func contains(_ value: Int) -> Bool {
    switch self {
    case .any: true
    case .oneOf(let values): values.contains(value)
    case .range(let range): range.contains(value)
    }
  }

  /// The member of the set nearest to a value; nil when the set is empty.
  public func nearest(to value: Int) -> Int? {
    switch self {
    case .any: value
    case .oneOf(let values): values.min { abs($0 - value) < abs($1 - value) }
    case .range(let range): min(max(value, range.lowerBound), range.upperBound)
    }
  }

  /// As a listing shows it: `any`, `8000, 16000`, `1 to 8`.
  public var description: String {
    switch self {
    case .any: "any"
    case .oneOf(let values): values.map(String.init).joined(separator: ", ")
    case .range(let range): "\(range.lowerBound) to \(range.upperBound)"
    }
  }
}

/// What a port accepts: a list of alternatives, tried in order. An empty list accepts everything.
public struct FormatConstraint: Sendable, Hashable {
  /// One format that is accepted.
  public struct Alternative: Sendable, Hashable {
    /// The kind a format must have.
    public var kind: Format.Kind
    /// Rates in Hz, for audio.
    public var rates: ValueSet
    /// Channel counts, for audio.
    public var channels: ValueSet
    /// Sample types, for PCM; empty means any.
    public var samples: [SampleType]
    /// Pixel types, for raw pictures; empty means any.
    public var pixels: [PixelType]

    /// An alternative by its kind; properties left out may have any value.
    public init(
      _ kind: Format.Kind, rates: ValueSet = .any, channels: ValueSet = .any, samples: [SampleType] = [],
      pixels: [PixelType] = []
    ) {
      self.kind = kind
      self.rates = rates
      self.channels = channels
      self.samples = samples
      self.pixels = pixels
    }

    /// True when the format matches.
    public func accepts(_ format: Format) -> Bool {
      guard format.kind == kind else { return false }
      if let rate = format.rate, !rates.contains(rate) { return false }
      if let count = format.channels, !channels.contains(count) { return false }
      if let sample = format.sample, !samples.isEmpty, !samples.contains(sample) { return false }
      if let pixel = format.pixel, !pixels.isEmpty, !pixels.contains(pixel) { return false }
      return true
    }
  }

  /// The alternatives in order of preference; empty: every format.
  public var alternatives: [Alternative]

  /// Accepts what any of the alternatives accepts.
  public init(_ alternatives: [Alternative]) { self.alternatives = alternatives }

  /// Accepts every format.
  public static let any = FormatConstraint([])
  /// PCM of the given rates, channel counts and sample types.
  public static func pcm(
    rates: ValueSet = .any, channels: ValueSet = .any, samples: [SampleType] = []
  ) -> FormatConstraint {
    FormatConstraint([Alternative(.pcm, rates: rates, channels: channels, samples: samples)])
  }
  /// Opus packets.
  public static func opus(rates: ValueSet = .any, channels: ValueSet = .any) -> FormatConstraint {
    FormatConstraint([Alternative(.opus, rates: rates, channels: channels)])
  }
  /// Raw pictures of any size and rate, of the given pixel types.
  public static func video(pixels: [PixelType] = []) -> FormatConstraint {
    FormatConstraint([Alternative(.video, pixels: pixels)])
  }
  /// A format without properties, such as `.text` or `.event`.
  public static func kind(_ kind: Format.Kind) -> FormatConstraint { FormatConstraint([Alternative(kind)]) }

  /// Accepts what this or the other constraint accepts.
  public func or(_ other: FormatConstraint) -> FormatConstraint {
    FormatConstraint(alternatives + other.alternatives)
  }

  /// True when the format is accepted.
  public func accepts(_ format: Format) -> Bool {
    alternatives.isEmpty || alternatives.contains { $0.accepts(format) }
  }
}

extension FormatConstraint: CustomStringConvertible {
  /// As errors and listings show it: `s16/f32 8000, 16000 Hz 1 to 2 ch or opus`.
  public var description: String {
    if alternatives.isEmpty { return "any format" }
    return alternatives.map(\.description).joined(separator: " or ")
  }
}

extension FormatConstraint.Alternative: CustomStringConvertible {
  public var description: String {
    var words: [String] = []
    switch kind {
    case .pcm where !samples.isEmpty: words.append(samples.map(\.rawValue).joined(separator: "/"))
    case .video where !pixels.isEmpty:
      words.append("video " + pixels.map(\.rawValue).joined(separator: "/"))
    default: words.append(kind.rawValue)
    }
    if kind == .pcm || kind == .opus {
      if rates != .any { words.append("\(rates) Hz") }
      if channels != .any { words.append("\(channels) ch") }
    }
    return words.joined(separator: " ")
  }
}
