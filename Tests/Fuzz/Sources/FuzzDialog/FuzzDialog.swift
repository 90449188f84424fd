import MillraceJSON
@testable import MillraceDialog

/// Feeds arbitrary bytes to the JSON parser, and the values that parse to the readers of events, commands and playback reports.
///
/// None may crash. An error must have a text and an offset inside the input. A value, an event or a command must survive a round trip.
/// Numbers must be finite. `EventPeek` must agree with the parser, also on the id of a command: otherwise a command would be answered twice,
/// or never.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDialog(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  peek(at: bytes)
  do throws(JSONProblem) {
    let value = try JSONValue(parsing: bytes)
    let written = value.bytes
    if try JSONValue(parsing: written) != value { fatalError("reads back differently: \(value)") }
    checkNumbers(in: value, depth: 1)
    checkPeek(at: written, of: value)
    checkID(at: written, of: value)
    checkEvent(value)
    checkCommand(value)
    checkControl(value)
  } catch {
    if !(0...count).contains(error.offset) || error.text.isEmpty {
      fatalError("an error without a text or outside the input: \(error)")
    }
  }
  return 0
}

private func checkNumbers(in value: JSONValue, depth: Int) {
  if depth > JSONValue.depthLimit { fatalError("a value deeper than the limit") }
  switch value {
  case .number:
    if let double = value.double, !double.isFinite { fatalError("\(value) is not finite") }
    if let integer = value.integer, let double = value.double, Double(integer) != double {
      fatalError("\(value) is \(integer) as an integer and \(double) as a double")
    }
  case .array(let items): for item in items { checkNumbers(in: item, depth: depth + 1) }
  case .object(let members): for member in members { checkNumbers(in: member.value, depth: depth + 1) }
  case .null, .bool, .string: break
  }
}

// MARK: - Events and commands

private func again(_ json: JSONValue) -> JSONValue {
  do throws(JSONProblem) { return try JSONValue(parsing: json.bytes) } catch {
    fatalError("serialized JSON does not parse: \(error)")
  }
}

private func checkError(_ error: JSONFormProblem) {
  if error.description.isEmpty { fatalError("an error without a text") }
}

private func checkEvent(_ json: JSONValue) {
  let event: DialogEvent
  do throws(JSONFormProblem) { event = try DialogEvent(json: json) } catch { return checkError(error) }
  do throws(JSONFormProblem) {
    if try DialogEvent(json: again(event.json)) != event {
      fatalError("the round trip changed \(event.json)")
    }
  } catch {
    fatalError("an event does not parse after a round trip: \(error): \(event.json)")
  }
}

private func checkCommand(_ json: JSONValue) {
  let command: DialogCommand
  do throws(JSONFormProblem) { command = try DialogCommand(json: json) } catch {
    return checkError(error)
  }
  do throws(JSONFormProblem) {
    if try DialogCommand(json: again(command.json)) != command {
      fatalError("the round trip changed \(command.json)")
    }
  } catch {
    fatalError("a command does not parse after a round trip: \(error): \(command.json)")
  }
}

private func checkControl(_ json: JSONValue) {
  do throws(JSONFormProblem) {
    if case .command(let command, _)? = try DialogControl.read(json), json["event"]?.string != nil {
      fatalError("an event was read as a command: \(command.json)")
    }
  } catch {
    checkError(error)
  }
}

// MARK: - Peeking

/// On arbitrary bytes any result is allowed, but no access outside of them.
private func peek(at bytes: [UInt8]) {
  let peek = EventPeek(bytes.span)
  _ = peek.has("event", "state")
  _ = peek.isTrue("final")
  _ = peek.contains("reply")
  _ = peek.integer("reply")
  _ = peek.commandID()
  _ = peek.round()
}

/// Where both find an id it is the same one, and what the reader of commands refuses is refused.
private func checkID(at bytes: [UInt8], of value: JSONValue) {
  guard let members = value.members, Set(members.map(\.name)).count == members.count, value["event"] == nil
  else { return }
  let expected = DialogControl.id(of: value)
  switch EventPeek(bytes.span).commandID() {
  case .none: if let id = value["id"], !id.isNull { fatalError("the peek does not find the id: \(value)") }
  // Integers of more digits, or with an exponent, are valid for the reader only.
  case .invalid:
    if expected != nil, value["id"]?.string != nil { fatalError("the peek refuses the id: \(value)") }
  case .text(let range):
    guard let id = try? JSONValue(parsing: Array(bytes[range])).string, id == expected else {
      fatalError("the peek finds another id: \(value)")
    }
  case .number(let range):
    let digits = String(decoding: bytes[range], as: UTF8.self)
    guard let expected, expected == digits || digits == "-0" && expected == "0" else {
      fatalError("the peek finds another number: \(value)")
    }
  }
}

/// On valid JSON without duplicate names or escapes in names, the peek must agree with the parser.
private func checkPeek(at bytes: [UInt8], of value: JSONValue) {
  guard let members = value.members, Set(members.map(\.name)).count == members.count else { return }
  let peek = EventPeek(bytes.span)
  if peek.contains("event") != (value["event"] != nil) {
    fatalError("the peek finds other members: \(value)")
  }
  if peek.has("event", "state") != (value["event"]?.string == "state") {
    fatalError("the peek finds another text: \(value)")
  }
  if peek.isTrue("final") != (value["final"]?.bool == true) {
    fatalError("the peek finds another boolean: \(value)")
  }
  // Only integers that a double represents exactly: decimals lose precision beyond that.
  if let seen = peek.integer("reply"), let read = value["reply"]?.integer, abs(read) < 1 << 53, seen != read {
    fatalError("the peek finds another number: \(value)")
  }
}
