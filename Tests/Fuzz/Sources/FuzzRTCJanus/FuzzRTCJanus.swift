import MillraceDialog
import MillraceJSON

/// Feeds arbitrary bytes to the readers of Janus' messages and of its text room. The lowest bit of the first byte selects which; for the
/// room each line is a message, or what this client does.
///
/// None may crash, and every error must have a text. Ids and candidates are within their bounds, and a message is the same after it was
/// written again. The room answers each message of this client once at most, and posts events that survive a round trip.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRTCJanus(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  if first & 1 == 0 {
    checkMessages(Array(bytes.dropFirst()))
  } else {
    var room = RoomWatch()
    for line in bytes.dropFirst().split(separator: 0x0A) { room.take(line) }
  }
  return 0
}

// MARK: - Messages

/// The most messages in the answer of a long poll, and candidates in a message.
private let most = 64
/// Bytes of the longest candidate, with the name that may be put in front of it.
private let candidateBytes = 1_024 + 10

private func checkMessages(_ bytes: [UInt8]) {
  let single = message(bytes)
  do throws(JanusMessageProblem) {
    let list = try JanusMessage.list(parsing: bytes)
    if let single {
      if list.messages != [single] || list.invalid != 0 { fatalError("a list of one is another") }
    } else if list.invalid < 0 || list.messages.count + list.invalid > most {
      fatalError("\(list.messages.count) messages, \(list.invalid) more")
    }
    for message in list.messages { check(message) }
  } catch {
    if error.text.isEmpty { fatalError("an error without a text") }
    if single != nil { fatalError("a message that is no list of one: \(error)") }
  }
}

private func message(_ bytes: [UInt8]) -> JanusMessage? {
  do throws(JanusMessageProblem) { return try JanusMessage(parsing: bytes) } catch {
    if error.text.isEmpty { fatalError("an error without a text") }
    return nil
  }
}

private func check(_ message: JanusMessage) {
  for id in [message.session, message.sender, message.id] {
    if let id, !(0...JanusID.largest).contains(id) { fatalError("the id \(id)") }
  }
  if message.candidates.count > most { fatalError("\(message.candidates.count) candidates") }
  for case let candidate? in message.candidates {
    if !candidate.hasPrefix("candidate:") || candidate.utf8.count > candidateBytes
      || !candidate.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
    {
      fatalError("no candidate: \(candidate)")
    }
  }
  if (message.refusal != nil) != (message.kind == .error) { fatalError("a refusal of \(message.kind)") }
  do throws(JanusMessageProblem) {
    if try JanusMessage(parsing: message.json.bytes) != message { fatalError("it reads back differently") }
  } catch {
    fatalError("a message that was written is refused: \(error)")
  }
}

// MARK: - The text room

/// A text room and what this client has asked of it.
private struct RoomWatch {
  private var room = TextRoom(JanusSettings(room: .number(1_234), pin: "0000", display: "Bot", user: "bot"))
  /// Messages that were not answered.
  private var messages: Set<Int> = []
  private var joins = 0

  /// Takes a line: one of this client, by its first byte, or a message of the room.
  mutating func take(_ line: ArraySlice<UInt8>) {
    let text = String(decoding: line.dropFirst(), as: UTF8.self)
    switch line.first {
    case UInt8(ascii: "j"):
      joins += 1
      checkWritten(room.join())
    case UInt8(ascii: "l"): checkWritten(room.leave())
    case UInt8(ascii: "m"), UInt8(ascii: "p"):
      let written = room.message(text, to: line.first == UInt8(ascii: "p") ? "ann" : nil)
      if !messages.insert(written.number).inserted { fatalError("two messages \(written.number)") }
      checkWritten(written.text)
    default: for outcome in room.read(Array(line)) { check(outcome) }
    }
  }

  private func checkWritten(_ text: String) {
    do throws(JSONProblem) {
      let json = try JSONValue(parsing: text)
      if json["textroom"]?.string == nil || json["transaction"]?.string == nil
        || json["room"]?.integer != 1_234
      {
        fatalError("no request: \(text)")
      }
    } catch {
      fatalError("a request that is no JSON: \(text)")
    }
  }

  private mutating func check(_ outcome: TextRoom.Outcome) {
    switch outcome {
    case .joined:
      joins -= 1
      if joins < 0 { fatalError("joined without a request") }
    case .failed(let error): if error.text.isEmpty { fatalError("an error without a text") }
    case .sent(let number, let error):
      if messages.remove(number) == nil { fatalError("message \(number) is answered once too often") }
      if let error, error.scope != .command { fatalError("a message ends the \(error.scope)") }
    case .event(let event): check(event)
    }
  }

  private func check(_ event: DialogEvent) {
    do throws(JSONFormProblem) {
      if try DialogEvent(json: event.json) != event { fatalError("the round trip changed \(event)") }
    } catch {
      fatalError("an event does not parse: \(error): \(event)")
    }
  }
}
