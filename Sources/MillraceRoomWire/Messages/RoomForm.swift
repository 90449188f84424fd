internal import MillraceJSON

/// Reading of members with the limits of the wire. `null` counts as missing.
extension JSONForm {
  /// A whole message: an object of at most `RoomLimits.messageBytes`.
  static func message(_ bytes: [UInt8]) throws(RoomReadProblem) -> JSONForm {
    guard bytes.count <= RoomLimits.messageBytes else {
      let text = "the message has \(bytes.count) bytes; at most \(RoomLimits.messageBytes) are allowed"
      throw RoomReadProblem(.badMessage, text)
    }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw RoomReadProblem(.badMessage, error.description)
    }
    guard json.members != nil else { throw RoomReadProblem(.badMessage, "the message must be a JSON object") }
    return JSONForm(json)
  }

  /// The id of a request, under the name that it has in requests or in answers.
  func id(_ member: String) throws(RoomReadProblem) -> Int {
    guard let id = self[member]?.integer, RoomLimits.ids.contains(id) else {
      let text = "\"\(member)\" must be an integer from 1 to \(RoomLimits.ids.upperBound)"
      throw RoomReadProblem(.badMessage, text)
    }
    return id
  }

  /// The payload; an empty object when it is missing.
  func payload() throws(JSONFormProblem) -> JSONForm {
    self["payload"] == nil ? JSONForm(.object([]), at: path(of: "payload")) : try object("payload")
  }

  // MARK: Names and words

  func name(_ member: String) throws(JSONFormProblem) -> RoomName {
    guard let name = RoomName(try string(member)) else {
      let most = RoomLimits.nameCharacters
      throw problem(member, "must be 1 to \(most) of the letters A to Z, a to z, the digits, - and _")
    }
    return name
  }

  func optionalName(_ member: String) throws(JSONFormProblem) -> RoomName? {
    guard self[member] != nil else { return nil }
    return try name(member)
  }

  func optionalWord<Word: RawRepresentable & CaseIterable>(
    _ member: String
  ) throws(JSONFormProblem) -> Word? where Word.RawValue == String {
    guard self[member] != nil else { return nil }
    let value: Word = try word(member)
    return value
  }

  /// A list of words of a fixed set. One that is repeated counts once.
  func words<Word: RawRepresentable & CaseIterable & Hashable>(
    _ member: String
  ) throws(JSONFormProblem) -> Set<Word> where Word.RawValue == String {
    var result: Set<Word> = []
    for entry in try array(member) {
      guard let word = entry.json.string.flatMap(Word.init(rawValue:)) else {
        let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
        throw JSONFormProblem(entry.path, "must be one of \(words)")
      }
      result.insert(word)
    }
    return result
  }

  // MARK: Texts

  func optionalString(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try string(member)
  }

  private func string(_ member: String, characters most: Int) throws(JSONFormProblem) -> String {
    let text = try string(member)
    guard text.unicodeScalars.count <= most else {
      throw problem(member, "must have at most \(most) characters")
    }
    return text
  }

  func displayName(_ member: String) throws(JSONFormProblem) -> String {
    try string(member, characters: RoomLimits.displayCharacters)
  }

  func optionalDisplayName(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try displayName(member)
  }

  /// A text for people.
  func text(_ member: String) throws(JSONFormProblem) -> String {
    try string(member, characters: RoomLimits.textCharacters)
  }

  func optionalText(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try text(member)
  }

  func token(_ member: String) throws(JSONFormProblem) -> String {
    try string(member, characters: RoomLimits.tokenCharacters)
  }

  func optionalToken(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try token(member)
  }

  /// What a file is called.
  func fileName(_ member: String) throws(JSONFormProblem) -> String {
    let name = try string(member, characters: RoomLimits.fileNameCharacters)
    guard !name.isEmpty else { throw problem(member, "must not be empty") }
    return name
  }

  func optionalMediaType(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try string(member, bytes: RoomLimits.typeBytes)
  }

  /// A label of data, or the `mid` of a medium.
  func label(_ member: String) throws(JSONFormProblem) -> String {
    try string(member, bytes: RoomLimits.labelBytes)
  }

  private func string(_ member: String, bytes most: Int) throws(JSONFormProblem) -> String {
    let text = try string(member)
    guard text.utf8.count <= most else { throw problem(member, "must have at most \(most) bytes") }
    return text
  }

  func optionalLabel(_ member: String) throws(JSONFormProblem) -> String? {
    guard self[member] != nil else { return nil }
    return try label(member)
  }

  /// A string without a limit of its own, which must fit into a message when it is passed on.
  func content(_ member: String) throws(JSONFormProblem) -> String {
    let text = try string(member)
    try checkSize(of: .string(text), member)
    return text
  }

  /// A command of the dialog vocabulary, to be passed on as it is: the hub may be older than the command.
  func command(_ member: String) throws(JSONFormProblem) -> JSONValue {
    let command = try object(member)
    _ = try command.string("command")
    try checkSize(of: command.json, member)
    return command.json
  }

  private func checkSize(of json: JSONValue, _ member: String) throws(JSONFormProblem) {
    guard json.bytes.count <= RoomLimits.contentBytes else {
      throw problem(member, "must have at most \(RoomLimits.contentBytes) bytes in JSON")
    }
  }

  // MARK: Numbers

  func integer(_ member: String, in range: ClosedRange<Int>) throws(JSONFormProblem) -> Int {
    guard let value = self[member]?.integer, range.contains(value) else {
      throw problem(member, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  func optionalInteger(_ member: String, in range: ClosedRange<Int>) throws(JSONFormProblem) -> Int? {
    guard self[member] != nil else { return nil }
    return try integer(member, in: range)
  }
}

extension JSONValue {
  /// A list of words, in the order in which they are declared.
  static func words<Word: RawRepresentable & CaseIterable & Hashable>(
    _ words: Set<Word>
  ) -> JSONValue where Word.RawValue == String {
    .array(Word.allCases.filter { words.contains($0) }.map { .string($0.rawValue) })
  }

  /// A message: its head, and the payload unless it is empty.
  static func message(_ head: [Member], payload: JSONValue) -> JSONValue {
    .object(payload.members?.isEmpty == false ? head + [Member("payload", payload)] : head)
  }
}
