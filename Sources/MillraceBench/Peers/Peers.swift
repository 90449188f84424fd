import Synchronization

/// Third-party libraries that do the same work, measured in the same run.
///
/// This library depends on none of them. The program in the folder `benchmarks` registers them before it runs the suites; rows
/// of a peer that is missing say how to get it.
public enum Peers {
  private static let known = Mutex<(rings: [any RingPeer], pipeline: (any PipelinePeer)?)>(([], nil))
  private static let heap = Mutex<(@Sendable () -> Int)?>(nil)

  /// Adds a ring to compare with.
  public static func add(_ ring: any RingPeer) { known.withLock { $0.rings.append(ring) } }

  /// Sets the media framework to compare with.
  public static func use(_ pipeline: any PipelinePeer) { known.withLock { $0.pipeline = pipeline } }

  /// Sets what counts the heap requests of the process, in a program that counts them.
  public static func countHeap(_ requests: @escaping @Sendable () -> Int) {
    heap.withLock { $0 = requests }
  }

  /// Heap requests of all threads so far; nil: nobody counts them.
  static var heapRequests: Int? {
    let count = heap.withLock { $0 }
    return count?()
  }

  static var rings: [any RingPeer] { known.withLock { $0.rings } }
  static var pipeline: (any PipelinePeer)? { known.withLock { $0.pipeline } }

  /// What the rows say when no peer is registered.
  static let absent = "not in this program: make bench"
}

/// A failure of a peer.
public struct PeerProblem: Error, CustomStringConvertible {
  /// What failed.
  public var description: String
  /// Creates a problem from a message.
  public init(_ description: String) { self.description = description }
}

/// A single-producer single-consumer queue. Elements have 32 bytes; the capacity is 1,024.
public protocol RingPeer: Sendable {
  /// Its name in the table, such as `boost`.
  var name: String { get }
  /// Why it cannot be measured, and what to do; nil when it can.
  var missing: String? { get }
  /// One thread pushes an element and pops it, `rounds` times. Returns seconds.
  func pushAndPop(rounds: Int) -> Double
  /// A thread on one processor pushes a burst and spins until a thread on another has popped it; `rounds` elements in all, a
  /// whole number of bursts. Returns seconds.
  func bursts(of size: Int, rounds: Int, from writer: Int, to reader: Int) -> Double
  /// An element goes to another thread and one comes back through a second ring, one at a time. Returns seconds.
  func roundTrip(rounds: Int, between core: Int, and other: Int) -> Double
}

/// A media framework that can run the same pipelines.
public protocol PipelinePeer: Sendable {
  /// Its name in the table, such as `gstreamer`.
  var name: String { get }
  /// Why it cannot be measured, and what to do; nil when it can.
  var missing: String? { get }

  /// A source of empty packets, nodes that pass them on and a sink that drops them, on one thread. Returns seconds from the
  /// first packet at the sink to the end.
  func chain(passes: Int, packets: Int) throws -> Double
  /// The same through one queue with a thread on each side, and nothing else.
  func queue(packets: Int) throws -> Double
  /// A source that emits every `interval` nanoseconds, a queue, and a sink on the other thread. Returns the nanoseconds each
  /// packet took.
  func queueDelays(packets: Int, interval: Int) throws -> [Double]

  /// The voice uplink from a WAV file to an Ogg file, unpaced, on one thread. Returns seconds from the request to the first
  /// packet at the file writer.
  func uplink(from input: String, to output: String) throws -> Double
  /// Live uplinks with all threads on one processor; adds the lateness of every measured packet to `bars`.
  func live(_ load: LiveLoad, _ bars: LatenessBars) throws
  /// Starts live uplinks from one file to many, calls `work`, and ends them.
  func hold(from input: String, to outputs: [String], during work: () throws -> Void) throws
  /// A sink that takes a packet every 20 ms, behind `passes` nodes and `backlog` queued packets. On each request everything
  /// queued is dropped and produced again. Returns the nanoseconds until the sink was notified, one for each request.
  func interrupt(backlog: Int, passes: Int, rounds: Int) throws -> [Double]
}
