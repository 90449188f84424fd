public import MillraceJSON

/// What an answer carries: `RoomLoggedIn`, `RoomJoined`, `RoomRoleChanged`, `RoomDescription`, `RoomCalling` or `RoomFileTicket`.
public protocol RoomPayload: Sendable, Hashable {
  /// Reads it; unknown members are ignored.
  init(_ form: JSONForm) throws(JSONFormProblem)

  /// The object.
  var json: JSONValue { get }
}

/// The hub's answer to a request: `{"answer":1,"ok":true,"payload":{…}}` or `{"answer":1,"ok":false,"error":{…}}`.
public struct RoomAnswer: Sendable, Hashable {
  /// The id of the request.
  public var id: Int
  /// The payload, an object, or why nothing was done.
  public var result: Result<JSONValue, RoomError>

  /// Creates an answer from its parts.
  public init(_ id: Int, _ result: Result<JSONValue, RoomError>) {
    self.id = id
    self.result = result
  }

  /// Says that it was done.
  public init(_ id: Int) { self.init(id, .success(.object([]))) }

  /// Says that it was done, and with what result.
  public init(_ id: Int, _ payload: some RoomPayload) { self.init(id, .success(payload.json)) }

  /// Says why nothing was done.
  public init(_ id: Int, _ error: RoomError) { self.init(id, .failure(error)) }

  /// Reads a text frame.
  public init(parsing bytes: [UInt8]) throws(RoomReadProblem) { try self.init(try JSONForm.message(bytes)) }

  init(_ form: JSONForm) throws(RoomReadProblem) {
    id = try form.id("answer")
    guard let isDone = form["ok"]?.bool else {
      throw RoomReadProblem(.badMessage, "\"ok\" must be true or false", id: id)
    }
    do throws(JSONFormProblem) {
      if isDone {
        result = .success(try form.payload().json)
      } else {
        result = .failure(try RoomError(try form.object("error")))
      }
    } catch {
      throw RoomReadProblem(error, id: id)
    }
  }

  /// The payload in its form. Throws the hub's error, or that the payload is not valid as `badPayload`.
  public func payload<Payload: RoomPayload>(_ type: Payload.Type = Payload.self) throws(RoomError) -> Payload
  {
    let json = try result.get()
    do throws(JSONFormProblem) { return try Payload(JSONForm(json, at: "payload")) } catch {
      throw RoomReadProblem(error, id: id).error
    }
  }

  /// The message.
  public var json: JSONValue {
    switch result {
    case .success(let payload):
      .message([.init("answer", .integer(id)), .init("ok", true)], payload: payload)
    case .failure(let error): ["answer": .integer(id), "ok": false, "error": error.json]
    }
  }

  /// The message as text.
  public var text: String { json.text }

  /// The bytes of `text`.
  public var bytes: [UInt8] { json.bytes }
}
