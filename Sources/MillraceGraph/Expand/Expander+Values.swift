import MillraceCore

extension Expander {
  // MARK: Substitution

  /// A value with its `${…}` replaced. Parameters are looked up in a scope; a default may use the environment only.
  mutating func substitute(_ written: Located<WrittenValue>, in scope: Int, isDefault: Bool = false) -> Given
  {
    let folder = draft.scopes[scope].document.folder
    var given = Given(value: written.value, place: written.place, folder: folder)
    switch written.value {
    case .text(let text):
      return substitute(text, into: given, in: scope, isDefault: isDefault)
    case .list(let items):
      var values: [Located<WrittenValue>] = []
      for item in items {
        let value = substitute(item, in: scope, isDefault: isDefault)
        if value.isSecret { given.isSecret = true }
        // What is written out here is bounded by its file.
        guard let found = value.value, !item.value.isReference || count(value.weight, at: item.place) else {
          return .unknown(at: written.place)
        }
        given.weight = given.weight.addingClamped(value.weight)
        values.append(Located(found, item.place))
      }
      given.value = .list(values)
      return given
    default: return given
    }
  }

  private mutating func substitute(_ text: String, into given: Given, in scope: Int, isDefault: Bool) -> Given
  {
    let template: Template
    do throws(Template.Fault) {
      template = try Template(text)
    } catch {
      problems.append(given.place.error(error.words.text, hint: error.words.hint))
      return .unknown(at: given.place)
    }
    // A lone reference keeps its value's type; anything else becomes text.
    if template.pieces.count == 1 {
      return value(of: template.pieces[0], into: given, in: scope, isDefault: isDefault)
    }
    var result = given
    var joined = ""
    var isComplete = true
    for (index, piece) in template.pieces.enumerated() {
      let part = value(of: piece, into: given, in: scope, isDefault: isDefault)
      result.isSecret = result.isSecret || part.isSecret
      // A path starts where its first character was written.
      if index == 0 { result.folder = part.folder }
      guard let value = part.value else {
        isComplete = false
        continue
      }
      guard let text = value.insideText else {
        problems.append(given.place.error("\(part.shown(value)) cannot stand inside a longer text"))
        isComplete = false
        continue
      }
      guard count(text.utf8.count, at: given.place) else {
        isComplete = false
        break
      }
      joined += text
    }
    result.weight = joined.utf8.count
    result.value = isComplete ? .text(joined) : nil
    return result
  }

  private mutating func value(of piece: Template.Piece, into given: Given, in scope: Int, isDefault: Bool)
    -> Given
  {
    var result = given
    switch piece {
    case .text(let text):
      result.value = .text(text)
      result.weight = text.utf8.count
    case .parameter(let name):
      draft.scopes[scope].used.insert(name)
      if isDefault {
        problems.append(
          given.place.error(
            "the default of a parameter cannot use another parameter, found \(Problem.quoted("${\(name)}"))",
            hint: "only ${env:NAME} may stand here"))
        return .unknown(at: given.place)
      }
      guard let value = draft.scopes[scope].values[name] else {
        complainOfUnknown(name, in: scope, at: given.place)
        return .unknown(at: given.place)
      }
      result = value
      result.place = given.place
    case .environment(let name, let fallback):
      let found = settings.environment[name]
      // As in a shell, `:-` also stands in for a variable that is set to nothing.
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
          given.place.error(
            "environment variable \(Problem.quoted(name)) is not set",
            hint: "set it, or write ${env:\(name):-default}"))
      }
    }
    return result
  }

  private mutating func complainOfUnknown(_ name: String, in scope: Int, at place: Place) {
    let declared = draft.scopes[scope].document.parameters.map(\.name.value)
    guesses += 1
    let meant = guesses <= GraphDraft.mostGuesses ? Spelling.nearest(to: name, among: declared) : nil
    var hint = meant.map(Spelling.hint)
    // The parameter that was meant is used, only misspelled.
    if let meant { draft.scopes[scope].used.insert(meant) }
    if hint == nil, name == name.uppercased(), name != name.lowercased() {
      hint = "for an environment variable write ${env:\(name)}"
    }
    problems.append(
      place.error(
        "the graph has no parameter \(Problem.quoted(name))",
        hint: hint ?? "declare it under \"parameters\", or write \"$${\" for the characters themselves"))
  }

  // MARK: Values of keys

  /// The value of a key that shapes the graph itself; nil when it is missing, unknown or, with a problem, secret: what shapes
  /// a graph is shown everywhere.
  mutating func plain(_ written: Located<WrittenValue>?, _ key: String, in scope: Int) -> Given? {
    guard let written else { return nil }
    let given = substitute(written, in: scope)
    if given.isSecret {
      problems.append(
        written.place.error(
          "\"\(key)\" cannot come from the environment, whose values are never shown",
          hint: "use a parameter and --set"))
      return nil
    }
    return given.value == nil ? nil : given
  }

  /// One word of a fixed list.
  mutating func word<Word: RawRepresentable<String> & CaseIterable & Sendable>(
    _ written: Located<WrittenValue>?, _ key: String, in scope: Int
  ) -> Located<Word>? {
    guard let written, let given = plain(written, key, in: scope), let value = given.value else { return nil }
    let words = Word.allCases.map(\.rawValue)
    if let text = value.insideText, let word = Word(rawValue: text) { return Located(word, written.place) }
    problems.append(
      written.place.error(
        "\"\(key)\" is \(Wording.oneOf(words)), found \(given.shown(value))",
        hint: value.insideText.flatMap { Spelling.hint(for: $0, among: words) }))
    return nil
  }

  /// The microseconds a call may take: a whole number, or a time with its unit.
  mutating func budget(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let given = plain(written, "budget", in: scope), let value = given.value else {
      return nil
    }
    var found: Int?
    if case .integer(let number)? = value.read(as: .integer) {
      found = number
    } else if let text = value.insideText {
      // Rounded up: a budget of less than a microsecond is one of a microsecond.
      found = TimeText.nanoseconds(text, units: [.us, .ms, .s]).map { Int(($0 + 999) / 1_000) }
    }
    if let found, GraphPlan.Node.budgetRange.contains(found) { return Located(found, written.place) }
    let range = GraphPlan.Node.budgetRange
    problems.append(
      written.place.error(
        "\"budget\" is \(range.lowerBound) to \(range.upperBound) us, found \(given.shown(value))",
        hint: found == nil ? "write 500, \"500us\" or \"1.5ms\"" : nil))
    return nil
  }

  /// The bytes a run may take: a size with its unit.
  mutating func memory(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let given = plain(written, "memory", in: scope), let value = given.value else {
      return nil
    }
    if let bytes = value.insideText.flatMap({ SizeText.bytes($0) }), bytes > 0 {
      return Located(bytes, written.place)
    }
    problems.append(
      written.place.error(
        "\"memory\" is a size with its unit, more than nothing, found \(given.shown(value))",
        hint: "write \"512MB\" or \"2GiB\""))
    return nil
  }

  /// How old packets may be: a time with its unit.
  mutating func maxAge(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Nanoseconds>? {
    guard let written, let given = plain(written, "maxAge", in: scope), let value = given.value else {
      return nil
    }
    let found = value.insideText.flatMap { TimeText.nanoseconds($0) }
    let range = GraphPlan.Node.maxAgeRange
    if let found, range.contains(found) { return Located(found, written.place) }
    let limits = "\(Figures.duration(range.lowerBound)) to \(Figures.duration(range.upperBound))"
    problems.append(
      written.place.error(
        "\"maxAge\" is \(limits), found \(given.shown(value))",
        hint: found == nil ? "write \"60ms\" or \"1.5s\"" : nil))
    return nil
  }

  /// The node that a source ends with, as its own file calls it.
  mutating func endsWith(_ written: Located<WrittenValue>?, in scope: Int) -> Located<String>? {
    guard let written, let given = plain(written, "endsWith", in: scope), let value = given.value else {
      return nil
    }
    if let name = value.insideText { return Located(draft.scopes[scope].prefix + name, written.place) }
    problems.append(
      written.place.error("\"endsWith\" is the name of a node, found \(given.shown(value))"))
    return nil
  }

  /// A link's capacity: packets, or a time with its unit. Its range is checked later.
  mutating func capacity(_ written: Located<WrittenValue>?, in scope: Int) -> Located<LinkCapacity>? {
    guard let written, let given = plain(written, "capacity", in: scope), let value = given.value else {
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
        "\"capacity\" is a number of packets or a time, found \(given.shown(value))",
        hint: "write 16, \"200ms\" or \"2s\""))
    return nil
  }
}

extension WrittenValue {
  /// What to do about text that is no path, but for the empty one.
  static let pathCure = "no path has the character U+0000; take it out"

  /// The same of this value; nil where it is a path, or no text, of which the words say enough.
  var pathCure: String? {
    guard let text = insideText else { return nil }
    return text.isEmpty ? "name a file" : text.utf8.contains(0) ? Self.pathCure : nil
  }

  /// The value as a declared type; text from outside is read as it. nil when it is something else.
  func read(as type: GraphParameterType) -> WrittenValue? {
    switch (type, self) {
    case (.string, .text), (.integer, .integer), (.number, .integer), (.number, .number), (.bool, .bool): self
    // The system would take U+0000 for the end of the name and open another file.
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
