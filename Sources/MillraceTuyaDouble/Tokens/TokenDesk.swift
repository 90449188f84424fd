internal import MillraceDoubles
internal import MillraceCore
internal import MillraceJSON

/// Issues agent tokens, and knows what each is worth. Any thread.
final class TokenDesk: Sendable {
  /// What a token is worth to a session.
  enum Verdict: Sendable, Hashable {
    case good(isIssued: Bool)
    case expired, foreign, unknown, missing
  }

  /// What is known of the tokens that were issued.
  private struct State {
    var issued: [String: TuyaTokenKind] = [:]
    var order: [String] = []
    var count = 0
  }

  /// Tokens that are remembered: a double may run for days.
  private static let most = 1_000

  let server: TuyaDouble.Server
  private let state = Locked(State())

  init(_ server: TuyaDouble.Server) { self.server = server }

  /// How many were asked for.
  var count: Int { state.withLock { $0.count } }

  /// Issues the next token; nil: the scenario wants an error.
  func issue() -> String? {
    let kinds = server.scenario.tokens
    return state.withLock { state in
      state.count += 1
      let kind = kinds[min(state.count, kinds.count) - 1]
      guard kind != .missing else { return nil }
      let token = "issued-\(state.count)-\(UInt32.random(in: 1...UInt32.max))"
      state.issued[token] = kind
      state.order.append(token)
      if state.order.count > Self.most { state.issued[state.order.removeFirst()] = nil }
      return token
    }
  }

  func judge(_ token: String?) -> Verdict {
    guard let token, !token.isEmpty else { return .missing }
    switch state.withLock({ $0.issued[token] }) {
    case .good?: return .good(isIssued: true)
    case .expired?: return .expired
    case .foreign?, .missing?: return .foreign
    case nil: break
    }
    let keys = server.scenario.keys
    return (keys.isEmpty ? [TuyaDouble.token] : keys).contains(token) ? .good(isIssued: false) : .unknown
  }

  /// A token that was good has expired: a session needs another.
  func expire(_ token: String) {
    state.withLock { state in
      if state.issued[token] != nil { state.issued[token] = .expired }
    }
  }

  /// What the token server answers, in the cloud's form: Base64 of where to connect and how a session is created.
  func answer(port: Int, isSecure: Bool) -> JSONValue {
    guard let token = issue() else {
      return ["success": false, "errorCode": "AGENT_TOKEN_FAILED", "errorMsg": "as the scenario requires"]
    }
    let scenario = server.scenario
    let expiry = UnixClock.seconds + scenario.expire
    let result: JSONValue = .object([
      "connect_conf": .object([
        "hosts": ["127.0.0.1"], "domains": ["127.0.0.1"],
        "ecc_tls_port": isSecure ? .integer(port) : nil, "tcpport": isSecure ? nil : .integer(port),
        "derived_client_id": .string(scenario.client), "clientId": .string(scenario.client),
        "username": .string(scenario.user), "credential": .string(scenario.password),
        "expire": .integer(expiry),
      ]),
      "session_conf": [
        "agentToken": .string(token),
        "bizConfig": [
          "bizCode": .integer(scenario.bizCode), "bizTag": .integer(scenario.bizTag),
          "sendData": .array(scenario.sendData.map { .string($0) }),
          "revData": .array(scenario.revData.map { .string($0) }),
        ],
      ],
    ])
    return [
      "success": true, "t": .integer(UnixClock.seconds), "result": .string(Base64.encode(result.bytes)),
    ]
  }
}
