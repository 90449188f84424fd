internal import MillraceCore

/// Watches a stopping run: decides when its workers have made no progress for too long.
///
/// Being inside a node's call is not proof of a stuck node. A worker with hundreds of graphs on a busy machine reaches this run
/// late, and destroying a node is a call too. A node is stuck when its worker ends no turn over many samples.
struct StopWatchdog {
  /// With `ownNodeLimit` it makes up the two seconds in which a stop completes.
  static let firstSample: Nanoseconds = 900_000_000
  /// Time between two samples after the first.
  static let interval: Nanoseconds = 25_000_000
  /// Samples without progress (one second) after which a node of this run that is in a call is considered stuck.
  static let ownNodeLimit = 40
  /// The same for a node of another graph, when none of this run's nodes is in a call: that graph has its own time to stop and may
  /// release the worker.
  static let otherNodeLimit = 80

  /// When the next sample is due, on the monotonic clock.
  private(set) var nextSample: Nanoseconds
  private var idleSamples = 0
  private var turns: Int?

  init(at now: Nanoseconds) { nextSample = now + Self.firstSample }

  /// Records how many turns the run's workers have ended by now.
  mutating func sample(turns ended: Int, now: Nanoseconds) {
    idleSamples = ended == turns ? idleSamples + 1 : 0
    turns = ended
    nextSample = now + Self.interval
  }

  var ownNodesAreStuck: Bool { idleSamples >= Self.ownNodeLimit }
  var othersAreStuck: Bool { idleSamples >= Self.otherNodeLimit }
}
