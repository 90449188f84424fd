import Synchronization

/// Other people's programs that do the same work, to be measured in the same run.
///
/// This library knows none: what they need is nobody's burden who only wants Millrace. The program of the folder
/// `benchmarks` names them before it runs the suites; without them every row of theirs says how to get them.
public enum Peers {
  private static let known = Mutex<(rings: [any RingPeer], pipeline: (any PipelinePeer)?)>(([], nil))

  /// Adds a ring.
  public static func add(_ ring: any RingPeer) { known.withLock { $0.rings.append(ring) } }

  /// Sets the media framework.
  public static func use(_ pipeline: any PipelinePeer) { known.withLock { $0.pipeline = pipeline } }

  static var rings: [any RingPeer] { known.withLock { $0.rings } }
  static var pipeline: (any PipelinePeer)? { known.withLock { $0.pipeline } }

  /// What the rings' rows say when nobody has named any.
  static let absent = "not in this program: make bench"
}

/// What a peer could not do, in words.
public struct PeerProblem: Error, CustomStringConvertible {
  /// In words.
  public var description: String
  /// A problem in words.
  public init(_ description: String) { self.description = description }
}

/// A queue with one writer and one reader, made by somebody else or by hand. Elements are 32 bytes, 1,024 of them fit.
public protocol RingPeer: Sendable {
  /// `boost`
  var name: String { get }
  /// nil when it can be measured; else why not, and what to do.
  var missing: String? { get }
  /// One thread pushes an element and pops it, `rounds` times. Answers seconds.
  func pushAndPop(rounds: Int) -> Double
  /// A thread on one processor pushes a burst and waits until one on another has popped it, both without ever sleeping;
  /// `rounds` elements, a whole number of bursts. Answers seconds.
  func bursts(of size: Int, rounds: Int, from writer: Int, to reader: Int) -> Double
  /// An element goes over and another comes back through a second ring, one at a time. Answers seconds.
  func roundTrip(rounds: Int, between core: Int, and other: Int) -> Double
}

/// A media framework that runs the same pipelines.
public protocol PipelinePeer: Sendable {
  /// `gstreamer`
  var name: String { get }
  /// nil when it can be measured; else why not, and what to do.
  var missing: String? { get }

  /// A source of empty packets, nodes that hand them on, a sink that drops them, on one thread. Answers seconds from the first
  /// packet at the sink to the end.
  func chain(passes: Int, packets: Int) throws -> Double
  /// The same through one queue with a thread on either side, and nothing else.
  func queue(packets: Int) throws -> Double
  /// A source that emits every `interval` nanoseconds, a queue, a sink on the other thread. Answers how many nanoseconds each
  /// packet took.
  func queueDelays(packets: Int, interval: Int) throws -> [Double]

  /// The voice uplink from a WAV file to an Ogg file, as fast as it goes, on one thread. Answers seconds from the request to
  /// the first packet at the file's writer.
  func uplink(from input: String, to output: String) throws -> Double
  /// Live uplinks, all threads on one processor.
  func live(_ load: LiveLoad, _ bars: LatenessBars) throws
  /// Sets live uplinks from one file to many going, calls `work`, and ends them.
  func hold(from input: String, to outputs: [String], during work: () throws -> Void) throws
  /// A sink that takes a packet every 20 ms, `passes` nodes and `backlog` packets before it: everything is dropped on request
  /// and made anew. Answers for each time the nanoseconds until the sink had been told.
  func interrupt(backlog: Int, passes: Int, rounds: Int) throws -> [Double]
}
