internal import MillraceCore

/// The header `Retry-After`, RFC 9110 section 10.2.3.
enum RetryAfter {
  /// The longest wait: an hour. A server with a wrong clock or header must not keep a service without a token for a day.
  static let most = Nanoseconds.milliseconds(3_600_000)

  /// How long to wait: a number of seconds, or a date in the form that servers must send (`Sun, 06 Nov 1994 08:49:37 GMT`).
  /// - Parameter unix: the Unix time in nanoseconds.
  /// - Returns: the wait, at least 0; nil for anything else.
  static func wait(_ text: String, at unix: Nanoseconds) -> Nanoseconds? {
    if let seconds = HTTPDate.number(text[...]) {
      return min(Nanoseconds(min(seconds, 86_400)) * 1_000_000_000, most)
    }
    guard let date = HTTPDate.seconds(of: text) else { return nil }
    return min(max(0, Nanoseconds(date) * 1_000_000_000 - unix), most)
  }
}
