public import MillraceJSON

/// A message of a member: `{"id":1,"op":"join","payload":{…}}`.
///
/// Reads any bytes: linear time, memory of at most about thirty times the input, unknown members are ignored. What was read fits into a
/// message when it is written, also as a push to another member.
public struct RoomRequest: Sendable, Hashable {
  /// The member's number of it, within `RoomLimits.ids`; see `RoomSequence`.
  public var id: Int
  /// What is asked.
  public var operation: RoomOperation

  /// Creates a request.
  public init(_ id: Int, _ operation: RoomOperation) {
    self.id = id
    self.operation = operation
  }

  /// Reads a text frame. A problem with an `id` is answered; one without is the push `error`.
  public init(parsing bytes: [UInt8]) throws(RoomReadProblem) {
    let form = try JSONForm.message(bytes)
    id = try form.id("id")
    guard let op = form["op"]?.string else {
      throw RoomReadProblem(.badMessage, "\"op\" must be a string", id: id)
    }
    guard let name = RoomOperation.Name(rawValue: op) else {
      throw RoomReadProblem(.unknownOp, "\"op\" is no operation of this hub", id: id)
    }
    let payload: JSONForm
    do throws(JSONFormProblem) { payload = try form.payload() } catch {
      throw RoomReadProblem(error, id: id)
    }
    if name == .login, let version = payload["version"]?.integer, version != RoomWire.version {
      throw RoomReadProblem(.unknownVersion, "\"payload.version\" must be \(RoomWire.version)", id: id)
    }
    do throws(JSONFormProblem) { operation = try RoomOperation(name, payload) } catch {
      throw RoomReadProblem(error, id: id)
    }
  }

  /// The message.
  public var json: JSONValue {
    .message([.init("id", .integer(id)), .init("op", .string(operation.name))], payload: operation.payload)
  }

  /// The message as text.
  public var text: String { json.text }

  /// The bytes of `text`.
  public var bytes: [UInt8] { json.bytes }
}
