internal import MillraceCore

/// Damage met in a stream. The first stretch is told at once; those that follow within a second are told together, once it is over or
/// with the utterance's end, so that a stream of nothing but noise neither floods the events nor loses a byte of the account.
struct DamageTally {
  /// What an event `damaged` says.
  struct Account {
    /// Where the first of the stretches begins: a byte or a sample, as the node counts.
    var place: Int64
    /// Bytes of all of them.
    var bytes: Int64
    /// Stretches so far, those told before among them.
    var count: Int
  }

  private var count = 0
  private var untold: (place: Int64, bytes: Int64)?
  private var pace = EventPace()

  /// Takes a stretch.
  mutating func note(at place: Int64, bytes: Int64) {
    count += 1
    untold = (untold?.place ?? place, (untold?.bytes ?? 0) + bytes)
  }

  /// What is to be told now, if anything. `isLast`: the utterance is over, so that nothing may be left.
  mutating func due(at now: Nanoseconds, isLast: Bool = false) -> Account? {
    guard let (place, bytes) = untold, pace.allows(at: now, isLast: isLast) else { return nil }
    untold = nil
    return Account(place: place, bytes: bytes, count: count)
  }

  /// Posts what is to be told now, of a node whose places are bytes. `event` is the number of its event `damaged`.
  mutating func tell(_ event: Int, _ ports: inout Ports, isLast: Bool = false) {
    guard let account = due(at: ports.now, isLast: isLast) else { return }
    ports.post(event) { fields in
      fields.field("byte", Int(account.place))
      fields.field("bytes", Int(account.bytes))
      fields.field("count", account.count)
    }
  }
}
