internal import MillraceCrypto
internal import MillraceJSON
internal import MillraceNet

/// The forms of a token server's answer: see `TuyaGrant.init(parsing:given:)`.
enum TuyaGrantForm {
  /// What an error recommends.
  private static let cure = "; check the token server"

  static func read(_ text: String, given: TuyaGrant) throws(TuyaTokenProblem) -> TuyaGrant {
    let start = text.utf8.first { $0 != 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    guard let start else { throw TuyaTokenProblem("the token is empty\(cure)", isFinal: true) }
    guard start == UInt8(ascii: "{") else {
      var grant = given
      grant.token = TuyaSecret(text)
      return grant
    }
    do throws(JSONFormProblem) {
      return try grant(in: try json(Array(text.utf8), "the answer"), given: given)
    } catch {
      throw TuyaTokenProblem("the answer of the token server is not valid: \(error)\(cure)", isFinal: true)
    }
  }

  private static func json(_ bytes: [UInt8], _ what: String) throws(JSONFormProblem) -> JSONValue {
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw JSONFormProblem("", "\(what) is not JSON: \(error)")
    }
    guard json.members != nil else { throw JSONFormProblem("", "\(what) is not an object") }
    return json
  }

  private static func grant(in json: JSONValue, given: TuyaGrant) throws(JSONFormProblem) -> TuyaGrant {
    let form = JSONForm(json)
    if let result = form["result"] {
      guard let encoded = result.string else { return try grant(in: result, given: given) }
      guard let bytes = Base64.decode(encoded) else { throw form.problem("result", "is not Base64") }
      return try grant(in: try Self.json(bytes, "\"result\""), given: given)
    }
    if form["success"]?.bool == false {
      throw form.problem("success", "is false: the cloud has refused the request")
    }
    guard form["session_conf"] != nil || form["connect_conf"] != nil else {
      return try grant(connection: form, session: form, business: form, given: given)
    }
    let session = try form.object("session_conf")
    let connection = form["connect_conf"] == nil ? JSONForm(.object([])) : try form.object("connect_conf")
    let business = session["bizConfig"] == nil ? session : try session.object("bizConfig")
    return try grant(connection: connection, session: session, business: business, given: given)
  }

  private static func grant(
    connection: JSONForm, session: JSONForm, business: JSONForm, given: TuyaGrant
  ) throws(JSONFormProblem) -> TuyaGrant {
    let token = try session.string("agentToken")
    guard !token.isEmpty else { throw session.problem("agentToken", "is empty") }
    var terms = given.terms
    if let code = try number(business, "bizCode") { terms.bizCode = UInt32(clamping: code) }
    if let tag = try number(business, "bizTag") { terms.bizTag = tag }
    if let sends = try kinds(business, "sendData") { terms.sends = sends }
    if let receives = try kinds(business, "revData") { terms.receives = receives }
    return TuyaGrant(
      access: given.access.completed(by: try access(connection)), token: TuyaSecret(token), terms: terms)
  }

  // MARK: Access

  private static func access(_ form: JSONForm) throws(JSONFormProblem) -> TuyaAccess {
    var access = TuyaAccess()
    access.address = try address(form)
    access.client = form["derived_client_id"]?.string ?? form["clientId"]?.string
    access.localKey = form["localKey"]?.string.map { SecretKey(utf8: $0) }
    access.user = form["username"]?.string ?? form["user"]?.string
    access.password = (form["credential"]?.string ?? form["password"]?.string).map { TuyaSecret($0) }
    if let algorithm = form["derivedAlgorithm"]?.string, let vector = form["derivedIv"]?.string {
      access.derivation = TuyaAccess.Derivation(algorithm: algorithm, vector: vector)
    }
    for name in ["expire", "expires"] where access.expiry == nil { access.expiry = try number(form, name) }
    return access
  }

  /// A domain goes with TLS, a host without.
  private static func address(_ form: JSONForm) throws(JSONFormProblem) -> WebAddress? {
    let domain = form["domains"]?.array?.lazy.compactMap(\.string).first
    let host = form["hosts"]?.array?.lazy.compactMap(\.string).first ?? form["host"]?.string
    let secure = try number(form, "ecc_tls_port")
    let plain = try number(form, "tcpport")
    if let name = domain ?? (secure == nil ? nil : host) {
      return try address(form, "tls", name, secure ?? plain ?? 443)
    }
    guard let host else { return nil }
    if let plain { return try address(form, "tcp", host, plain) }
    return try address(form, form["scheme"]?.string ?? "tls", host, try number(form, "port") ?? 443)
  }

  private static func address(
    _ form: JSONForm, _ scheme: String, _ host: String, _ port: UInt64
  ) throws(JSONFormProblem) -> WebAddress {
    let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    guard let address = try? WebAddress("\(scheme)://\(name):\(port)"), address.scheme.isStream else {
      throw form.problem("host", "and the port are not an address")
    }
    return address
  }

  // MARK: Values

  /// A number that is not negative, or a string of digits.
  private static func number(_ form: JSONForm, _ name: String) throws(JSONFormProblem) -> UInt64? {
    guard let value = form[name] else { return nil }
    if let number = value.integer, let whole = UInt64(exactly: number) { return whole }
    if let text = value.string, let whole = UInt64(text) { return whole }
    throw form.problem(name, "must be a whole number")
  }

  private static func kinds(_ form: JSONForm, _ name: String) throws(JSONFormProblem) -> [TuyaDataKind]? {
    guard let value = form[name] else { return nil }
    guard let list = value.array else { throw form.problem(name, "must be an array") }
    // A kind that is new would shift the numbers of those behind it, so that it is an error.
    var kinds: [TuyaDataKind] = []
    for entry in list {
      guard let kind = entry.string.flatMap(TuyaDataKind.init(rawValue:)) else {
        let known = TuyaDataKind.allCases.map(\.rawValue).joined(separator: ", ")
        throw form.problem(name, "must have entries of \(known)")
      }
      kinds.append(kind)
    }
    return kinds
  }
}
