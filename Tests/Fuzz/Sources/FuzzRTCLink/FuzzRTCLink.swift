import MillraceDialog
import MillraceJSON
import MillraceRTCWire

@testable import MillraceRTCSignal

/// Feeds what the other side says over links of a graph to the machine of sessions by offer and answer. The first byte sets the machine up;
/// then each line is something that happens, by its first byte (`LinkLine`).
///
/// It must not crash. A message that was read, and every message that is written, reads back the same. Sessions follow the order of
/// `LinkWatch`, and whatever was said before, the machine still has a session with a side that begins anew.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRTCLink(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  var link = LinkWatch(offers: first & 1 != 0, isPolite: first & 2 != 0, isTrickle: first & 4 != 0)
  for line in bytes.dropFirst().split(separator: 0x0A) {
    guard let line = LinkLine(line) else { continue }
    switch line {
    case .heard(let name, let payload):
      if let message = readMessage(name, payload) { link.give(.message(message)) }
    case .done(let letter, let number, let text): link.take(letter, number, text)
    }
  }
  link.finish()
  return 0
}

/// A line of the input.
enum LinkLine {
  /// The other side says something: `s`, `c` or `h`, and the payload as JSON.
  case heard(String, JSONValue)
  /// Any other byte: something happens on this side; with the digit of a session behind it, if it is not about the present one, and a
  /// text.
  case done(UInt8, session: Int?, text: String)

  init?(_ line: ArraySlice<UInt8>) {
    guard let letter = line.first else { return nil }
    var rest = line.dropFirst()
    let names: [UInt8: String] = [
      UInt8(ascii: "s"): "sdp", UInt8(ascii: "c"): "candidate", UInt8(ascii: "h"): "hangUp",
    ]
    if let name = names[letter] {
      guard let payload = try? JSONValue(parsing: Array(rest)) else { return nil }
      self = .heard(name, payload)
      return
    }
    var number: Int?
    if let digit = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
      number = Int(digit - UInt8(ascii: "0"))
      rest = rest.dropFirst()
    }
    self = .done(letter, session: number, text: String(decoding: rest, as: UTF8.self))
  }
}

// MARK: - Messages

/// A message of the other side, checked; nil: it cannot be read.
func readMessage(_ name: String, _ payload: JSONValue) -> LinkMessage? {
  let message: LinkMessage
  do throws(JSONFormProblem) { message = try LinkMessage(name, payload) } catch {
    if error.text.isEmpty { fatalError("a problem without a text") }
    return nil
  }
  if message.name != name { fatalError("\(name) is read as \(message.name)") }
  if let session = message.sessionName, session.utf8.count > LinkMessage.mostNameBytes {
    fatalError("the name of a session has \(session.utf8.count) bytes")
  }
  checkWritten(message)
  return message
}

/// A message is the same after it was written and read again, alone and as the event in which it goes over a link.
func checkWritten(_ message: LinkMessage) {
  do throws(JSONFormProblem) {
    let again = try LinkMessage(message.name, message.payload)
    if again != message || again.payload != message.payload {
      fatalError("it reads back differently: \(message)")
    }
    if try DialogEvent(json: message.event.json) != message.event {
      fatalError("its event reads back differently: \(message)")
    }
  } catch {
    fatalError("a message that was written is refused: \(error): \(message)")
  }
}

extension LinkMessage {
  fileprivate var sessionName: String? {
    switch self {
    case .offer(_, let session), .answer(_, let session), .candidate(_, _, let session),
      .hangUp(_, let session):
      session
    }
  }
}
