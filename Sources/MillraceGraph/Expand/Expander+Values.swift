import MillraceCore

extension Expander {
  // MARK: Substitution

  /// A value with its placeholders `${…}` replaced. Looks parameters up in a scope; a default may refer only to the environment.
  mutating func substitute(
    _ written: Located<WrittenValue>, in scope: Int, isDefault: Bool = false
  ) -> ExpandedValue {
    let folder = draft.scopes[scope].document.folder
    var result = ExpandedValue(value: written.value, place: written.place, folder: folder)
    switch written.value {
    case .text(let text):
      return substitute(text, into: result, in: scope, isDefault: isDefault)
    case .list(let items):
      var values: [Located<WrittenValue>] = []
      for item in items {
        let value = substitute(item, in: scope, isDefault: isDefault)
        if value.isSecret { result.isSecret = true }
        // Only placeholders count: the size of the rest is limited by its file.
        guard let expanded = value.value, !item.value.isReference || count(value.weight, at: item.place)
        else {
          return .unknown(at: written.place)
        }
        result.weight = result.weight.addingClamped(value.weight)
        values.append(Located(expanded, item.place))
      }
      result.value = .list(values)
      return result
    default: return result
    }
  }

  private mutating func substitute(
    _ text: String, into target: ExpandedValue, in scope: Int, isDefault: Bool
  ) -> ExpandedValue {
    let template: Template
    do throws(Template.Fault) {
      template = try Template(text)
    } catch {
      problems.append(target.place.error(.invalidPlaceholder, error.text, hint: error.hint))
      return .unknown(at: target.place)
    }
    // A placeholder alone keeps the type of its value; anything else is text.
    if template.pieces.count == 1 {
      return value(of: template.pieces[0], into: target, in: scope, isDefault: isDefault)
    }
    var result = target
    var joined = ""
    var isComplete = true
    for (index, piece) in template.pieces.enumerated() {
      let part = value(of: piece, into: target, in: scope, isDefault: isDefault)
      result.isSecret = result.isSecret || part.isSecret
      // A relative path starts at the folder of the text it begins with.
      if index == 0 { result.folder = part.folder }
      guard let value = part.value else {
        isComplete = false
        continue
      }
      guard let text = value.insideText else {
        problems.append(
          target.place.error(
            .invalidPlaceholder, "\(part.shown(value)) cannot be part of a longer string",
            hint: "use a string, a number, true or false"))
        isComplete = false
        continue
      }
      guard count(text.utf8.count, at: target.place) else {
        isComplete = false
        break
      }
      joined += text
    }
    result.weight = joined.utf8.count
    result.value = isComplete ? .text(joined) : nil
    return result
  }

  private mutating func value(
    of piece: Template.Piece, into target: ExpandedValue, in scope: Int, isDefault: Bool
  ) -> ExpandedValue {
    var result = target
    switch piece {
    case .text(let text):
      result.value = .text(text)
      result.weight = text.utf8.count
    case .parameter(let name):
      draft.scopes[scope].used.insert(name)
      if isDefault {
        problems.append(
          target.place.error(
            .invalidPlaceholder,
            "the default of a parameter cannot refer to another parameter, found \(Problem.quoted("${\(name)}"))",
            hint: "only ${env:NAME} is allowed here"))
        return .unknown(at: target.place)
      }
      guard let value = draft.scopes[scope].values[name] else {
        reportUnknownParameter(name, in: scope, at: target.place)
        return .unknown(at: target.place)
      }
      result = value
      result.place = target.place
    case .environment(let name, let fallback):
      let found = settings.environment[name]
      // As in a shell, `:-` also applies to a variable that is set but empty.
      if let fallback, found?.isEmpty ?? true {
        result.value = .outside(fallback)
        return result
      }
      result.value = found.map { .outside($0) }
      if let found { draft.environmentValues.insert(found) }
      result.folder = ""
      result.isSecret = true
      if found == nil {
        problems.append(
          target.place.error(
            .unsetVariable, "environment variable \(Problem.quoted(name)) is not set",
            hint: "set it, or write ${env:\(name):-default}"))
      }
    }
    return result
  }

  private mutating func reportUnknownParameter(_ name: String, in scope: Int, at place: Place) {
    let declared = draft.scopes[scope].document.parameters.map(\.name.value)
    suggestionCount += 1
    let meant =
      suggestionCount <= GraphDraft.maxSuggestions ? Spelling.nearest(to: name, among: declared) : nil
    var hint = meant.map(Spelling.hint)
    // The parameter that was meant does not count as unused.
    if let meant { draft.scopes[scope].used.insert(meant) }
    if hint == nil, name == name.uppercased(), name != name.lowercased() {
      hint = "for an environment variable write ${env:\(name)}"
    }
    problems.append(
      place.error(
        .unknownGraphParameter, "unknown parameter \(Problem.quoted(name))",
        hint: hint ?? "declare it in \"parameters\", or write \"$${\" for a literal \"${\""))
  }

  // MARK: Values of keys

  /// The value of a key of the graph format; nil when it is missing or unknown. A secret value is a problem: drawings, listings and
  /// metrics show these keys.
  mutating func plain(_ written: Located<WrittenValue>?, _ key: String, in scope: Int) -> ExpandedValue? {
    guard let written else { return nil }
    let expanded = substitute(written, in: scope)
    if expanded.isSecret {
      problems.append(
        written.place.error(
          .secretNotAllowed, "\"\(key)\" cannot come from an environment variable, whose value is secret",
          hint: "use a parameter and --set"))
      return nil
    }
    return expanded.value == nil ? nil : expanded
  }

  /// One of a fixed set of words.
  mutating func word<Word: RawRepresentable<String> & CaseIterable & Sendable>(
    _ written: Located<WrittenValue>?, _ key: String, in scope: Int
  ) -> Located<Word>? {
    guard let written, let expanded = plain(written, key, in: scope), let value = expanded.value else {
      return nil
    }
    let words = Word.allCases.map(\.rawValue)
    if let text = value.insideText, let word = Word(rawValue: text) { return Located(word, written.place) }
    problems.append(
      written.place.error(
        .invalidValue, "\"\(key)\" must be \(Wording.oneOf(words)), found \(expanded.shown(value))",
        hint: value.insideText.flatMap { Spelling.hint(for: $0, among: words) }))
    return nil
  }

  /// The microseconds that a call may take: an integer, or a time with its unit.
  mutating func budget(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let expanded = plain(written, "budget", in: scope), let value = expanded.value else {
      return nil
    }
    var found: Int?
    if case .integer(let number)? = value.read(as: .integer) {
      found = number
    } else if let text = value.insideText {
      // Rounded up to whole microseconds.
      found = TimeText.nanoseconds(text, units: [.us, .ms, .s]).map { Int(($0 + 999) / 1_000) }
    }
    if let found, GraphPlan.Node.budgetRange.contains(found) { return Located(found, written.place) }
    let range = GraphPlan.Node.budgetRange
    problems.append(
      written.place.error(
        .invalidValue,
        "\"budget\" must be \(range.lowerBound) to \(range.upperBound) us, found \(expanded.shown(value))",
        hint: found == nil ? "write 500, \"500us\" or \"1.5ms\"" : nil))
    return nil
  }

  /// The bytes that a run may use: a size with its unit.
  mutating func memory(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let expanded = plain(written, "memory", in: scope), let value = expanded.value else {
      return nil
    }
    if let bytes = value.insideText.flatMap({ SizeText.bytes($0) }), bytes > 0 {
      return Located(bytes, written.place)
    }
    problems.append(
      written.place.error(
        .invalidValue, "\"memory\" must be a size above 0 with its unit, found \(expanded.shown(value))",
        hint: "write \"512MB\" or \"2GiB\""))
    return nil
  }

  /// The maximum age of packets: a time with its unit.
  mutating func maxAge(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Nanoseconds>? {
    guard let written, let expanded = plain(written, "maxAge", in: scope), let value = expanded.value else {
      return nil
    }
    let found = value.insideText.flatMap { TimeText.nanoseconds($0) }
    let range = GraphPlan.Node.maxAgeRange
    if let found, range.contains(found) { return Located(found, written.place) }
    let limits = "\(Figures.duration(range.lowerBound)) to \(Figures.duration(range.upperBound))"
    problems.append(
      written.place.error(
        .invalidValue, "\"maxAge\" must be \(limits), found \(expanded.shown(value))",
        hint: found == nil ? "write \"60ms\" or \"1.5s\"" : nil))
    return nil
  }

  /// The name of the node that a source ends with; the file names it without the prefix of the including nodes.
  mutating func endsWith(_ written: Located<WrittenValue>?, in scope: Int) -> Located<String>? {
    guard let written, let expanded = plain(written, "endsWith", in: scope), let value = expanded.value else {
      return nil
    }
    if let name = value.insideText { return Located(draft.scopes[scope].prefix + name, written.place) }
    problems.append(
      written.place.error(
        .invalidValue, "\"endsWith\" must be the name of a node, found \(expanded.shown(value))"))
    return nil
  }

  /// The capacity of a link: packets, or a time with its unit. `CapacityRange` checks its range.
  mutating func capacity(_ written: Located<WrittenValue>?, in scope: Int) -> Located<LinkCapacity>? {
    guard let written, let expanded = plain(written, "capacity", in: scope), let value = expanded.value else {
      return nil
    }
    if case .integer(let packets)? = value.read(as: .integer) {
      return Located(.packets(packets), written.place)
    }
    if let text = value.insideText, let capacity = LinkCapacity(text) {
      return Located(capacity, written.place)
    }
    problems.append(
      written.place.error(
        .invalidValue, "\"capacity\" must be a number of packets or a time, found \(expanded.shown(value))",
        hint: "write 16, \"200ms\" or \"2s\""))
    return nil
  }
}

extension WrittenValue {
  /// The cure for a path with a NUL character.
  static let pathCure = "a path cannot contain U+0000; remove it"

  /// The cure for a string that is not a path; nil for a path, and for a value of another type, where the message is enough.
  var pathCure: String? {
    guard let text = insideText else { return nil }
    return text.isEmpty ? "name a file" : text.utf8.contains(0) ? Self.pathCure : nil
  }

  /// The value as a declared type; text from outside the graph is parsed. nil when it has another type.
  func read(as type: GraphParameterType) -> WrittenValue? {
    switch (type, self) {
    case (.string, .text), (.integer, .integer), (.number, .integer), (.number, .number), (.bool, .bool): self
    // The system would end the name at U+0000 and open another file.
    case (.path, .text(let text)), (.path, .outside(let text)): text.utf8.contains(0) ? nil : .text(text)
    case (.string, .outside(let text)): .text(text)
    case (.integer, .outside(let text)): Int(text).map { .integer($0) }
    case (.number, .outside(let text)):
      Int(text).map { .integer($0) } ?? Double(text).flatMap { $0.isFinite ? .number($0) : nil }
    case (.bool, .outside(let text)): Bool(text).map { .bool($0) }
    default: nil
    }
  }
}
