internal import MillraceCore

// What listings, reference pages and the schema say about a contract.

extension NodeContract {
  /// The part of the type before the first dot: `audio` for `audio.read`.
  var family: String { String(type.prefix { $0 != "." }) }

  /// When the node runs.
  var driveDescription: String {
    let driving = inputs.filter(\.drives).map(\.name)
    let names =
      driving.count == inputs.count || driving.isEmpty ? "" : " (\(driving.joined(separator: ", ")))"
    return switch drive {
    case .anyInput:
      inputs.count == 1 ? "when a packet arrives" : "when any driving input\(names) has a packet"
    case .allInputs: "when every driving input\(names) that has not ended has a packet"
    case .itself: "by itself: after the start, on its timer, and while it has more to do"
    }
  }

  /// Where the node runs.
  var laneDescription: String {
    switch lane {
    case .voice: "voice, at most \(budget) us a call"
    case .bulk: "bulk, where a call may take milliseconds"
    case .external: "external: it has its own thread or task"
    }
  }

  /// The clocks that the node can follow.
  var clockDescription: String {
    followsVirtualClock
      ? "realtime and virtual" : "only realtime: it depends on something outside the graph"
  }
}

extension PortContract {
  /// The name, with its numbers for a repeated port: `in1…in8`.
  var displayName: String {
    guard let copies else { return name }
    return copies.lowerBound == copies.upperBound && copies.upperBound == 1
      ? "\(name)1" : "\(name)1…\(name)\(copies.upperBound)"
  }

  /// Its properties besides name and formats.
  func traits(isInput: Bool) -> [String] {
    var traits: [String] = []
    if let copies, isRequired, copies.lowerBound > 0 {
      traits.append("at least \(copies.lowerBound)")
    } else if isRequired && isInput {
      traits.append("required")
    } else if !isRequired {
      traits.append("optional")
    }
    if isInput && !drives { traits.append("does not make the node run") }
    return traits
  }
}

extension ParameterContract.Kind {
  /// The type: `integer`, `list of numbers`, `one of low, voice, high`.
  func name(plural: Bool = false) -> String {
    switch self {
    case .bool: plural ? "bools" : "bool"
    case .integer: plural ? "integers" : "integer"
    case .number: plural ? "numbers" : "number"
    case .string: plural ? "strings" : "string"
    case .path: plural ? "paths" : "path"
    case .choice(let choices):
      plural ? choices.joined(separator: " or ") : "one of \(choices.joined(separator: ", "))"
    case .list(let item, _): "\(plural ? "lists" : "list") of \(item.name(plural: true))"
    }
  }

  /// The accepted range of a number with its unit: `6000 to 510000 bit/s`, `at least 2 s`; nil when it is unlimited.
  func limits(unit: String) -> String? {
    let unit = unit.isEmpty ? "" : " \(unit)"
    switch self {
    case .integer(let range):
      return Self.limits(
        from: range.lowerBound == .min ? nil : "\(range.lowerBound)",
        to: range.upperBound == .max ? nil : "\(range.upperBound)", unit)
    case .number(let range):
      let greatest = Double.greatestFiniteMagnitude
      return Self.limits(
        from: range.lowerBound <= -greatest ? nil : Figures.number(range.lowerBound, decimals: 6),
        to: range.upperBound >= greatest ? nil : Figures.number(range.upperBound, decimals: 6), unit)
    default: return nil
    }
  }

  private static func limits(from lower: String?, to upper: String?, _ unit: String) -> String? {
    switch (lower, upper) {
    case (nil, nil): nil
    case (let lower?, nil): "at least \(lower)\(unit)"
    case (nil, let upper?): "at most \(upper)\(unit)"
    case (let lower?, let upper?): "\(lower) to \(upper)\(unit)"
    }
  }
}

extension ParameterContract {
  /// The accepted range with its unit, of a list also the number of items; nil when it is unlimited.
  var limits: String? {
    guard case .list(let item, let count) = kind else { return kind.limits(unit: unit) }
    let each = item.limits(unit: unit).map { ", each \($0)" } ?? ""
    let counted =
      count.upperBound == .max
      ? "at least \(count.lowerBound)"
      : count.count == 1 ? "\(count.lowerBound)" : "\(count.lowerBound) to \(count.upperBound)"
    return "\(counted) items\(each)"
  }

  /// The default as a graph file writes it, with its unit; nil when there is none.
  var defaultDescription: String? {
    guard let value = defaultValue else { return nil }
    let written: String =
      switch value {
      case .number(let number): Figures.number(number, decimals: 6)
      default: value.description
      }
    return unit.isEmpty ? written : "\(written) \(unit)"
  }

  /// The part of the value that is never shown; nil when all of it is shown.
  var secrecyDescription: String? {
    switch secrecy {
    case .none: nil
    case .whole: "secret: never shown"
    case .address: "secret: user, password, query and stream key are never shown"
    case .assigned: "secret: names are shown, values never"
    case .credentials: "secret: credentials in it are never shown"
    }
  }

  /// Type, range, default and the rest in one line: `integer, 6000 to 510000 bit/s, default 24000 bit/s, live`.
  var traits: String {
    var parts = [kind.name()]
    if let limits {
      parts.append(limits)
    } else if !unit.isEmpty && defaultValue == nil {
      parts.append("in \(unit)")
    }
    if isRequired { parts.append("required") }
    if let defaultDescription { parts.append("default \(defaultDescription)") }
    if isLive { parts.append("live") }
    if isSecret { parts.append("secret") }
    return parts.joined(separator: ", ")
  }
}
