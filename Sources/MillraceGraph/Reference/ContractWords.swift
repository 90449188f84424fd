internal import MillraceCore

// The words in which listings, pages and the schema speak of a contract.

extension NodeContract {
  /// What stands before the first dot of the type: `audio` for `audio.read`.
  var family: String { String(type.prefix { $0 != "." }) }

  /// When the node runs, in words.
  var driveWords: String {
    let driving = inputs.filter(\.drives).map(\.name)
    let named =
      driving.count == inputs.count || driving.isEmpty ? "" : " (\(driving.joined(separator: ", ")))"
    return switch drive {
    case .anyInput:
      inputs.count == 1 ? "when a packet comes in" : "when any driving input\(named) has a packet"
    case .allInputs: "when every driving input\(named) that has not ended has a packet"
    case .itself: "by itself: after the start, on its timer, and while it has more to do"
    }
  }

  /// Where the node runs, in words.
  var laneWords: String {
    switch lane {
    case .voice: "voice, \(budget) us a call at most"
    case .bulk: "bulk, where a call may take milliseconds"
    case .external: "external: it has a thread or task of its own"
    }
  }

  var clockWords: String {
    followsVirtualClock ? "realtime and virtual" : "realtime only: it depends on something outside the graph"
  }
}

extension PortContract {
  /// The name with its numbers: `in1…in8` for a repeated port.
  var shownName: String {
    guard let copies else { return name }
    return copies.lowerBound == copies.upperBound && copies.upperBound == 1
      ? "\(name)1" : "\(name)1…\(name)\(copies.upperBound)"
  }

  /// What there is to know beside name and formats.
  func traits(isInput: Bool) -> [String] {
    var traits: [String] = []
    if let copies, isRequired, copies.lowerBound > 0 {
      traits.append("at least \(copies.lowerBound)")
    } else if isRequired && isInput {
      traits.append("required")
    } else if !isRequired {
      traits.append("optional")
    }
    if isInput && !drives { traits.append("accompanies: does not make the node run") }
    return traits
  }
}

extension ParameterContract {
  /// `integer`, `list of numbers`, `one of low, voice, high`.
  var typeWords: String { Self.words(kind) }

  private static func words(_ kind: Kind, plural: Bool = false) -> String {
    switch kind {
    case .bool: plural ? "bools" : "bool"
    case .integer: plural ? "integers" : "integer"
    case .number: plural ? "numbers" : "number"
    case .string: plural ? "texts" : "text"
    case .path: plural ? "paths" : "path"
    case .choice(let words): (plural ? "words of " : "one of ") + words.joined(separator: ", ")
    case .list(let item, _): (plural ? "lists of " : "list of ") + Self.words(item, plural: true)
    }
  }

  /// The accepted range with its unit; nil when there is none.
  var limits: String? {
    switch kind {
    case .list(let item, let count):
      let each = Self.limits(of: item, unit).map { ", each \($0)" } ?? ""
      let counted =
        count.upperBound == .max
        ? "at least \(count.lowerBound)" : count.count == 1 ? "\(count.lowerBound)" : Self.span(count)
      return "\(counted) items\(each)"
    default: return Self.limits(of: kind, unit)
    }
  }

  private static func limits(of kind: Kind, _ unit: String) -> String? {
    let unit = unit.isEmpty ? "" : " \(unit)"
    switch kind {
    case .integer(let range):
      switch (range.lowerBound == .min, range.upperBound == .max) {
      case (true, true): return nil
      case (false, true): return "at least \(range.lowerBound)\(unit)"
      case (true, false): return "at most \(range.upperBound)\(unit)"
      case (false, false): return span(range) + unit
      }
    case .number(let range):
      let most = Double.greatestFiniteMagnitude
      let (low, high) = (
        Figures.number(range.lowerBound, decimals: 6), Figures.number(range.upperBound, decimals: 6)
      )
      switch (range.lowerBound <= -most, range.upperBound >= most) {
      case (true, true): return nil
      case (false, true): return "at least \(low)\(unit)"
      case (true, false): return "at most \(high)\(unit)"
      case (false, false): return "\(low) to \(high)\(unit)"
      }
    default: return nil
    }
  }

  private static func span(_ range: ClosedRange<Int>) -> String {
    "\(range.lowerBound) to \(range.upperBound)"
  }

  /// The default as a graph file writes it, with its unit; nil without one.
  var defaultWords: String? {
    guard let value = defaultValue else { return nil }
    let written: String =
      switch value {
      case .number(let number): Figures.number(number, decimals: 6)
      default: value.description
      }
    return unit.isEmpty ? written : "\(written) \(unit)"
  }

  /// What of it is never shown; nil: all of it is shown.
  var secrecyWords: String? {
    switch secrecy {
    case .none: nil
    case .whole: "secret: never shown"
    case .address: "secret: user, password, query and a stream's key are never shown"
    case .assigned: "secret: names are shown, values never"
    case .credentials: "secret: credentials in it are never shown"
    }
  }

  /// Type, range, default and the rest in one line: `integer, 6000 to 510000 bit/s, default 24000 bit/s, live`.
  var traits: String {
    var parts = [typeWords]
    if let limits {
      parts.append(limits)
    } else if !unit.isEmpty && defaultValue == nil {
      parts.append("in \(unit)")
    }
    if isRequired { parts.append("required") }
    if let defaultWords { parts.append("default \(defaultWords)") }
    if isLive { parts.append("live") }
    if isSecret { parts.append("secret") }
    return parts.joined(separator: ", ")
  }
}
