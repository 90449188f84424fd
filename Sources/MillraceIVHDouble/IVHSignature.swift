internal import MillraceCrypto
internal import MillraceJSON

/// What the double says of a request's query. Computed by itself, from the vendor's document.
enum IVHSignature {
  /// The account of the double: its appkey, and its accesstoken unless the scenario has others.
  static let appKey = "appkey-of-the-double", token = "token-of-the-double"
  /// Seconds by which clocks may differ.
  static let tolerance = 300

  enum Verdict: Equatable {
    case valid
    case missing(String)
    /// The clocks differ by this many seconds.
    case late(Int)
    case wrong
  }

  /// - Parameters:
  ///   - value: the first value of a name in the query, decoded.
  ///   - tokens: those that are accepted.
  ///   - time: seconds since 1970, by the double's clock.
  static func check(
    _ value: (String) -> String?, isChannel: Bool, tokens: [String], at time: Int
  ) -> Verdict {
    guard let key = value("appkey") else { return .missing("appkey") }
    guard let stamp = value("timestamp"), let sent = Int(stamp) else { return .missing("timestamp") }
    guard let signature = value("signature") else { return .missing("signature") }
    var text = "appkey=\(key)"
    if isChannel {
      guard let request = value("requestid") else { return .missing("requestid") }
      text += "&requestid=\(request)"
    }
    text += "&timestamp=\(stamp)"
    guard abs(time - sent) <= tolerance else { return .late(sent - time) }
    let isValid = tokens.contains { token in
      Base64.encode(HMAC.sha256(text.utf8.span, key: SecretKey(utf8: token))) == signature
    }
    return isValid && key == appKey ? .valid : .wrong
  }
}
