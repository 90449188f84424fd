internal import MillraceCore

/// A run that was told to stop: how long its workers have stood still since.
///
/// Being inside a node is no sign by itself. A worker of hundreds of graphs on a busy machine comes to this run late, and is then
/// in calls of its nodes as in any others; what drops a node is such a call, too. A node that holds its worker is one that the
/// worker ends no turn for, however often somebody looks.
struct StopWatchdog {
  /// With `ownNodeLimit` it makes the two seconds in which a stop is over.
  static let firstSample: Nanoseconds = 900_000_000
  /// Between two looks behind the first.
  static let interval: Nanoseconds = 25_000_000
  /// Looks without a turn's end, a second's, after which a node of the run that is in a call is taken to stay there.
  static let ownNodeLimit = 40
  /// And after which a node of another graph is, where none of the run's own is in a call: that graph has its own time to stop, and
  /// may give the worker back.
  static let otherNodeLimit = 80

  /// When to look next, on the monotonic clock.
  private(set) var nextSample: Nanoseconds
  private var idleSamples = 0
  private var turns: Int?

  init(at now: Nanoseconds) { nextSample = now + Self.firstSample }

  /// Takes note of how many turns the run's workers have ended by now.
  mutating func sample(turns ended: Int, now: Nanoseconds) {
    idleSamples = ended == turns ? idleSamples + 1 : 0
    turns = ended
    nextSample = now + Self.interval
  }

  var ownNodesAreStuck: Bool { idleSamples >= Self.ownNodeLimit }
  var othersAreStuck: Bool { idleSamples >= Self.otherNodeLimit }
}
