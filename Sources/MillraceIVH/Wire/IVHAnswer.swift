public import MillraceJSON

/// The answer to a request over HTTP: the payload of one that succeeded, or the service's error.
public struct IVHAnswer: Sendable, Hashable {
  /// The state of a session.
  public enum Status: Int, Sendable, Hashable, CaseIterable {
    /// Running.
    case active = 1
    /// Closed, or there is no such session.
    case closed
    /// Being prepared: it takes up to two minutes.
    case preparing
    /// It could not be prepared.
    case failed
    /// Its preparation took too long.
    case timedOut
  }

  /// `Payload`; an empty object where there is none.
  public let payload: JSONValue

  /// Reads an answer: the envelope, whatever the status of HTTP.
  /// - Returns: the payload, or the service's error.
  /// - Throws: if the text is not an envelope.
  public static func parse(_ bytes: [UInt8]) throws(JSONFormProblem) -> Result<IVHAnswer, IVHFault> {
    let form = JSONForm(try IVHEnvelope.parse(bytes))
    if let fault = try IVHEnvelope.fault(of: form) { return .failure(fault) }
    guard form["Payload"] != nil else { return .success(IVHAnswer(.object([] as [JSONValue.Member]))) }
    return .success(IVHAnswer(try form.object("Payload").json))
  }

  init(_ payload: JSONValue) { self.payload = payload }

  /// `SessionId`.
  public var session: String? { payload["SessionId"]?.string.flatMap { $0.isEmpty ? nil : $0 } }
  /// `PlayStreamAddr`: a secret, as it may contain a signature.
  public var playAddress: String? { payload["PlayStreamAddr"]?.string.flatMap { $0.isEmpty ? nil : $0 } }
  /// `SessionStatus`; nil: there is none, or it is unknown.
  public var status: Status? { IVHNumber.read(payload["SessionStatus"]).flatMap(Status.init) }
  /// `IsSessionStarted`: it needs no start any more. Session generation only.
  public var isStarted: Bool { payload["IsSessionStarted"]?.bool ?? false }
  /// The error within the state of a session: session generation only.
  public var fault: IVHFault? {
    guard let code = IVHNumber.read(payload["ErrorCode"]), code != 0 else { return nil }
    return IVHFault(code, payload["ErrorMessage"]?.string ?? payload["ErrorMsg"]?.string ?? "")
  }
  /// True when the session was closed because the same user started another.
  public var isReplaced: Bool { IVHNumber.read(payload["CloseType"]) == 5 || fault?.isReplaced == true }
}

/// A number that some answers send as a text.
enum IVHNumber {
  static func read(_ value: JSONValue?) -> Int? { value?.integer ?? value?.string.flatMap { Int($0) } }
}

extension IVHEnvelope {
  /// The largest message that is parsed, in bytes.
  static let largest = 1 << 20

  static func parse(_ bytes: [UInt8]) throws(JSONFormProblem) -> JSONValue {
    guard bytes.count <= largest else { throw JSONFormProblem("message", "has more than \(largest) bytes") }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw JSONFormProblem("message", "is \(error)")
    }
    guard json.members != nil else { throw JSONFormProblem("message", "must be an object") }
    return json
  }

  /// The error in the header, or nil.
  static func fault(of form: JSONForm) throws(JSONFormProblem) -> IVHFault? {
    guard form["Header"] != nil else { return nil }
    let header = try form.object("Header")
    guard let value = header["Code"] else { return nil }
    guard let code = IVHNumber.read(value) else { throw header.problem("Code", "must be an integer") }
    return code == 0 ? nil : IVHFault(code, header["Message"]?.string ?? "")
  }
}
