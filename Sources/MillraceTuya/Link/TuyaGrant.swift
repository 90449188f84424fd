/// What a session is allowed: the token of an agent with its terms, and the access to the cloud where the token server gives it.
///
/// Descriptions and mirrors show nothing of it but the address.
public struct TuyaGrant: Sendable, Hashable {
  /// Where to connect, and as whom; what it does not say is a parameter.
  public var access: TuyaAccess
  /// The agent token.
  public var token: TuyaSecret
  /// What the token allows.
  public var terms: TuyaTerms

  /// Creates a grant from its parts.
  public init(access: TuyaAccess = TuyaAccess(), token: TuyaSecret, terms: TuyaTerms = TuyaTerms()) {
    self.access = access
    self.token = token
    self.terms = terms
  }

  /// Reads the answer of a token server, in one of three forms:
  ///
  /// - flat: `{host, port, scheme?, clientId, localKey?, user?, password?, agentToken, bizCode, bizTag, sendData, revData, expire}`;
  /// - the cloud's: `{result: "base64 of {connect_conf, session_conf}"}`, or `result` as an object;
  /// - the object `{connect_conf, session_conf}` itself.
  ///
  /// - Parameters:
  ///   - text: JSON; a text that does not begin with a brace is the agent token alone.
  ///   - given: the parameters, which complete the answer.
  /// - Throws: what is wrong with it, without content, with a cure.
  public init(parsing text: String, given: TuyaGrant) throws(TuyaTokenProblem) {
    self = try TuyaGrantForm.read(text, given: given)
  }
}

extension TuyaGrant: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The address, and nothing secret.
  public var description: String { "a grant for \(access)" }
  /// The same.
  public var debugDescription: String { description }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
