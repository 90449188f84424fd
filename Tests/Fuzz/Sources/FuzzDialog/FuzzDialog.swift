@testable import MillraceDialog

/// Feeds any bytes to the JSON of dialogues, and what is JSON to the readers of events, commands and playback reports.
///
/// None may crash. A refusal has words and a place inside the input. What was read must read back the same after it was written, be it
/// a value, an event or a command; numbers are finite; and a glance at the bytes sees what reading them finds.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDialog(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  glance(at: bytes)
  do throws(JSONProblem) {
    let value = try JSONValue(parsing: bytes)
    let written = value.bytes
    if try JSONValue(parsing: written) != value { fatalError("reads back differently: \(value)") }
    checkNumbers(in: value, depth: 1)
    checkGlance(at: written, of: value)
    checkEvent(value)
    checkCommand(value)
    checkControl(value)
  } catch {
    if !(0...count).contains(error.offset) || error.text.isEmpty {
      fatalError("a refusal without words or outside the input: \(error)")
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

// MARK: - Words of a dialogue

private func again(_ json: JSONValue) -> JSONValue {
  do throws(JSONProblem) { return try JSONValue(parsing: json.bytes) } catch {
    fatalError("what was written does not read: \(error)")
  }
}

private func checkRefusal(_ problem: DialogFormProblem) {
  if problem.description.isEmpty { fatalError("a refusal without words") }
}

private func checkEvent(_ json: JSONValue) {
  let event: DialogEvent
  do throws(DialogFormProblem) { event = try DialogEvent(json: json) } catch { return checkRefusal(error) }
  do throws(DialogFormProblem) {
    if try DialogEvent(json: again(event.json)) != event { fatalError("another event: \(event.json)") }
  } catch {
    fatalError("an event that does not read back: \(error): \(event.json)")
  }
}

private func checkCommand(_ json: JSONValue) {
  let command: DialogCommand
  do throws(DialogFormProblem) { command = try DialogCommand(json: json) } catch {
    return checkRefusal(error)
  }
  do throws(DialogFormProblem) {
    if try DialogCommand(json: again(command.json)) != command {
      fatalError("another command: \(command.json)")
    }
  } catch {
    fatalError("a command that does not read back: \(error): \(command.json)")
  }
}

private func checkControl(_ json: JSONValue) {
  do throws(DialogFormProblem) {
    if case .command(let command)? = try DialogControl.read(json), json["event"]?.string != nil {
      fatalError("an event that is a command: \(command.json)")
    }
  } catch {
    checkRefusal(error)
  }
}

// MARK: - Glances

/// On any bytes it may find anything, but only inside of them.
private func glance(at bytes: [UInt8]) {
  let glance = EventGlance(bytes.span)
  _ = glance.has("event", "state")
  _ = glance.isTrue("final")
  _ = glance.contains("reply")
  _ = glance.integer("reply")
}

/// On what is well formed, without doubled names or escapes in names, it agrees with the reader.
private func checkGlance(at bytes: [UInt8], of value: JSONValue) {
  guard let members = value.members, Set(members.map(\.name)).count == members.count else { return }
  let glance = EventGlance(bytes.span)
  if glance.contains("event") != (value["event"] != nil) { fatalError("another member: \(value)") }
  if glance.has("event", "state") != (value["event"]?.string == "state") {
    fatalError("another text: \(value)")
  }
  if glance.isTrue("final") != (value["final"]?.bool == true) { fatalError("another truth: \(value)") }
  // Whole numbers that a double holds: of others reading them with decimals leaves something out.
  if let seen = glance.integer("reply"), let read = value["reply"]?.integer, abs(read) < 1 << 53, seen != read
  {
    fatalError("another number: \(value)")
  }
}
