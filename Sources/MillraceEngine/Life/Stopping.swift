internal import MillraceCore

/// A run that was told to stop: how long its workers have stood still since.
///
/// Being inside a node is no sign by itself. A worker of hundreds of graphs on a busy machine comes to this run late, and is then
/// in calls of its nodes as in any others; what drops a node is such a call, too. A node that holds its worker is one that the
/// worker ends no turn for, however often somebody looks.
struct Stopping {
  /// With `ownLooks` it makes the two seconds in which a stop is over.
  static let firstLook: Nanoseconds = 900_000_000
  /// Between two looks behind the first.
  static let interval: Nanoseconds = 25_000_000
  /// Looks without a turn's end, a second's, after which a node of the run that is in a call is taken to stay there.
  static let ownLooks = 40
  /// And after which a node of another graph is, where none of the run's own is in a call: that graph has its own time to stop, and
  /// may give the worker back.
  static let otherLooks = 80

  /// When to look next, on the monotonic clock.
  private(set) var lookAt: Nanoseconds
  private var looks = 0
  private var turns: Int?

  init(at now: Nanoseconds) { lookAt = now + Self.firstLook }

  /// Takes note of how many turns the run's workers have ended by now.
  mutating func look(turns ended: Int, now: Nanoseconds) {
    looks = ended == turns ? looks + 1 : 0
    turns = ended
    lookAt = now + Self.interval
  }

  var ownNodesAreStuck: Bool { looks >= Self.ownLooks }
  var othersAreStuck: Bool { looks >= Self.otherLooks }
}
