internal import MillraceCore
internal import MillraceDialog

/// Limits the errors that a peer can cause without end to one a second of each kind.
///
/// The first of a kind is reported at once. Those that follow within a second are counted, and the newest of them is reported with their
/// number once the second is over, or at the end. Pure: times come in.
struct RepeatedErrors {
  /// What can be repeated.
  enum Kind: Hashable, CaseIterable {
    /// A data channel, or a message on one, that breaks a rule.
    case refusedChannel
    /// A message that is larger than this side takes, or than the peer takes.
    case receivedTooLarge, sentTooLarge
    /// A medium that a session does not have, though it was wanted.
    case refusedSound, refusedPictures
    /// An offer for a session that runs.
    case refusedOffer
  }

  /// An error, and how many of its kind it stands for, itself included.
  struct Report: Equatable {
    var error: DialogError
    var count: Int
  }

  private struct State {
    /// Not before this time.
    var nextAt: Nanoseconds
    /// Not reported yet.
    var count = 0
    var newest: DialogError?
  }

  private var states: [Kind: State] = [:]

  /// When something that was counted is to be reported; nil: nothing was.
  var deadline: Nanoseconds? { states.values.filter { $0.newest != nil }.map { $0.nextAt }.min() }

  /// Notes an error. Returns what is to be reported now.
  mutating func note(_ error: DialogError, _ kind: Kind, at now: Nanoseconds) -> Report? {
    var state = states[kind] ?? State(nextAt: now)
    state.count += 1
    state.newest = error
    states[kind] = state
    return take(kind, at: now, isLast: false)
  }

  /// What was counted and is due.
  /// - Parameter isLast: everything is.
  mutating func takeDue(at now: Nanoseconds, isLast: Bool = false) -> [Report] {
    var reports: [Report] = []
    for kind in Kind.allCases {
      if let report = take(kind, at: now, isLast: isLast) { reports.append(report) }
    }
    return reports
  }

  private mutating func take(_ kind: Kind, at now: Nanoseconds, isLast: Bool) -> Report? {
    guard let state = states[kind], let error = state.newest, isLast || state.nextAt <= now else {
      return nil
    }
    states[kind] = State(nextAt: now + EventThrottle.interval)
    return Report(error: error, count: state.count)
  }
}
