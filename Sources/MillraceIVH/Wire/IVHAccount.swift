internal import MillraceCrypto
internal import MillraceJSON

/// The account of an application, and the signature of its requests: HMAC-SHA256 over the query, in Base64.
///
/// Source: cloud.tencent.com/document/product/1240/100386 and 107197. The body of a request is not signed.
public struct IVHAccount: Sendable {
  /// How far the clock of this machine may be from the service's, in seconds; beyond it every request is refused.
  public static let clockTolerance = 300

  /// `appkey`, which every request shows.
  public let appKey: String
  private let token: SecretKey

  /// An account.
  /// - Parameters:
  ///   - appKey: identifies the application.
  ///   - token: its `accesstoken`, the key of the signature; it is never sent.
  public init(appKey: String, token: String) {
    self.appKey = appKey
    self.token = SecretKey(utf8: token)
  }

  /// The query of a request, signed.
  /// - Parameters:
  ///   - time: seconds since 1970.
  ///   - session: for the command channel, the session it belongs to: it is sent as `requestid`.
  public func query(at time: Int, session: String? = nil) -> String {
    var parameters = [("appkey", appKey), ("timestamp", String(time))]
    if let session { parameters.append(("requestid", session)) }
    let query = CanonicalQuery(parameters)
    let signature = Base64.encode(HMAC.sha256(query.plain.utf8.span, key: token))
    // Base64 has "+", "/" and "=", which mean something else in a query.
    return "\(query.encoded)&signature=\(PercentEncoding.encode(signature))"
  }
}
