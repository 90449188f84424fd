internal import MillraceCore

/// Rate-limits reports of damage in a stream. The first damaged range is reported at once; further ones within a second are reported
/// together, when the second is over or at the end of the utterance. Pure noise therefore does not flood the event stream, and every
/// byte is still accounted for.
struct DamageReporter {
  /// The content of a `damaged` event.
  struct Account {
    /// Start of the first damaged range, in bytes or samples depending on the node.
    var place: Int64
    /// Total bytes of these ranges.
    var bytes: Int64
    /// Damaged ranges so far, including those reported before.
    var count: Int
  }

  private var count = 0
  private var pending: (place: Int64, bytes: Int64)?
  private var pace = EventThrottle()

  /// Records a damaged range.
  mutating func note(at place: Int64, bytes: Int64) {
    count += 1
    pending = (pending?.place ?? place, (pending?.bytes ?? 0) + bytes)
  }

  /// The report due now, if any. `isLast`: the utterance is over, so nothing may be held back.
  mutating func due(at now: Nanoseconds, isLast: Bool = false) -> Account? {
    guard let (place, bytes) = pending, pace.allows(at: now, isLast: isLast) else { return nil }
    pending = nil
    return Account(place: place, bytes: bytes, count: count)
  }

  /// Posts the report due now, for a node whose positions are bytes. `event` is the number of its event `damaged`.
  mutating func post(_ event: Int, _ ports: inout Ports, isLast: Bool = false) {
    guard let account = due(at: ports.now, isLast: isLast) else { return }
    ports.post(event) { fields in
      fields.field("byte", Int(account.place))
      fields.field("bytes", Int(account.bytes))
      fields.field("count", account.count)
    }
  }
}
