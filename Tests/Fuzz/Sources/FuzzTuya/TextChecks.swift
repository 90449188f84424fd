import MillraceJSON

/// User data and texts.
enum TextChecks {
  /// The most packets of a text channel in an input: each that may end a text is read from its beginning.
  private static let mostPackets = 64

  /// - Parameter settings: a bit for the form.
  static func takeUserData(_ bytes: [UInt8], _ settings: UInt8) {
    let dialect = settings & 1 == 0 ? TuyaDialect.v21 : .v1
    let data: JSONValue
    do throws(TuyaWireProblem) { data = try TuyaUserData.read(bytes, dialect) } catch {
      guard error.code == .userData, !error.text.isEmpty else { fatalError("user data: \(error)") }
      return
    }
    if data.members == nil { fatalError("\(data) is no object") }
    let written = TuyaUserData.bytes(data, dialect)
    do throws(TuyaWireProblem) {
      let copy = try TuyaUserData.read(written, dialect)
      if copy != data { fatalError("the round trip changed \(data) to \(copy)") }
    } catch {
      // A text with JSON in a member may be as deep as JSON is read, which is too deep within an object.
      if !error.text.contains("nested deeper") { fatalError("\(error) in the copy of \(data)") }
    }
  }

  /// Packets of a text channel, with two bytes in front of each: its place in the stream, and how long it is.
  static func takeTexts(_ bytes: ArraySlice<UInt8>) {
    var assembler = TuyaTextAssembler()
    var rest = bytes
    var collected = 0
    for _ in 0..<mostPackets {
      guard let first = rest.popFirst(), let count = rest.popFirst() else { break }
      let piece = Array(rest.prefix(Int(first >> 2) << 8 | Int(count)))
      rest = rest.dropFirst(piece.count)
      collected += piece.count
      check(from: collected) { () throws(TuyaTextProblem) in
        try assembler.take(piece, TuyaStreamFlag(rawValue: first & 3) ?? .onlyOne)
      }
    }
    check(from: collected) { () throws(TuyaTextProblem) in try assembler.finish() }
    check(from: 0) { () throws(TuyaTextProblem) in
      // What was collected is gone.
      try assembler.finish()
    }
  }

  /// - Parameter count: bytes that have arrived; of 0 there is no text, and no problem.
  private static func check(from count: Int, _ read: () throws(TuyaTextProblem) -> [TuyaText]) {
    do throws(TuyaTextProblem) {
      for text in try read() {
        if count == 0 { fatalError("a text of nothing: \(text)") }
        check(text)
      }
    } catch {
      if count == 0 || error.text.isEmpty { fatalError("the problem \(error) of \(count) bytes") }
    }
  }

  private static func check(_ text: TuyaText) {
    do throws(TuyaTextProblem) {
      if try TuyaText(parsing: text.raw.bytes) != text { fatalError("the round trip changed \(text)") }
    } catch {
      fatalError("a text is not readable after a round trip: \(error)")
    }
  }
}
