/// The header `Retry-After`, RFC 9110 section 10.2.3.
package enum RetryAfter {
  /// The longest wait in nanoseconds: an hour. A server with a wrong clock or header must not stop a client for a day.
  package static let most: Int64 = 3_600_000_000_000

  /// How long to wait: a number of seconds, or a date in the form that servers must send (`Sun, 06 Nov 1994 08:49:37 GMT`).
  /// - Parameter unix: the Unix time in nanoseconds.
  /// - Returns: the wait in nanoseconds, at least 0; nil for anything else.
  package static func wait(_ text: String, at unix: Int64) -> Int64? {
    if let seconds = HTTPDate.number(text[...]) {
      return min(Int64(min(seconds, 86_400)) * 1_000_000_000, most)
    }
    guard let date = HTTPDate.seconds(of: text) else { return nil }
    // In seconds first: nanoseconds overflow after the year 2262.
    guard Int64(date) - unix / 1_000_000_000 < most / 1_000_000_000 else { return most }
    return max(0, Int64(date) * 1_000_000_000 - unix)
  }
}
