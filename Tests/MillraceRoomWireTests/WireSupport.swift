import MillraceJSON
import MillraceRoomWire

let ann = RoomName("ann")!
let bob = RoomName("bob")!
let room = RoomName("r1")!
let peer = RoomName("p1")!
let other = RoomName("p2")!
let callID = RoomName("c1")!
let fileID = RoomName("f1")!

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func request(_ text: String) throws(RoomReadProblem) -> RoomRequest { try RoomRequest(parsing: bytes(text)) }

func push(_ text: String) throws(RoomReadProblem) -> RoomPush { try RoomPush(parsing: bytes(text)) }

/// The problem of a request; nil: it is valid.
func problem(_ text: String) -> RoomReadProblem? { problem(bytes(text)) }

func problem(_ bytes: [UInt8]) -> RoomReadProblem? {
  do throws(RoomReadProblem) {
    _ = try RoomRequest(parsing: bytes)
    return nil
  } catch { return error }
}

/// The problem of a push; nil: it is valid.
func pushProblem(_ text: String) -> RoomReadProblem? {
  do throws(RoomReadProblem) {
    _ = try push(text)
    return nil
  } catch { return error }
}

/// The problem of an answer; nil: it is valid.
func answerProblem(_ text: String) -> RoomReadProblem? {
  do throws(RoomReadProblem) {
    _ = try RoomAnswer(parsing: bytes(text))
    return nil
  } catch { return error }
}

/// The text of a request of an operation with this payload.
func line(_ op: String, _ payload: String) -> String { #"{"id":1,"op":"\#(op)","payload":\#(payload)}"# }

extension JSONValue {
  /// This object with another value of a member; nil: without it.
  func with(_ member: String, _ value: JSONValue?) -> JSONValue {
    .object(
      (members ?? []).compactMap { entry in
        entry.name == member ? value.map { JSONValue.Member(member, $0) } : entry
      })
  }
}
