public import MillraceCore
public import MillraceNet
internal import Synchronization

/// The time and the thread of a service's connection: an event loop of the process, or a clock that a test advances by hand, so that ten
/// minutes of pacing and heartbeats take milliseconds.
public protocol ServiceClock: Sendable {
  /// The event loop that owns the session's sockets; what it reports arrives on the connection's thread.
  var loop: NetLoop { get }
  /// The time, which never runs backwards.
  var now: Nanoseconds { get }
  /// Runs a call on the connection's thread, after those before it.
  func run(_ body: @escaping @Sendable () -> Void)
  /// Runs a call on the connection's thread after a delay in nanoseconds.
  func run(after delay: Nanoseconds, _ body: @escaping @Sendable () -> Void) -> ServiceTimer
  /// Runs `work` on the connection's thread whenever the signal is raised, until it ends.
  func begin(_ signal: NetWakeSignal, _ work: @escaping @Sendable () -> Void)
}

/// A call that is due at a time.
public struct ServiceTimer: Sendable {
  private let onCancel: @Sendable () -> Void

  /// - Parameter onCancel: prevents the call, if it has not begun.
  public init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

  /// Cancels the call; without effect once it has begun.
  public func cancel() { onCancel() }
}

/// The real-time clock, and a place on one of the network threads, which the session keeps for its whole life.
public struct NetServiceClock: ServiceClock {
  private let clock = Clock(.realtime)
  private let lease: NetLoop.Lease

  /// A place on the loop that has room: see `NetLoop.assign`.
  /// - Throws: when the process has no descriptor left for a network thread; the text names the cure.
  public init() throws(NetError) { lease = try NetLoop.assign() }

  public var loop: NetLoop { lease.loop }
  public var now: Nanoseconds { clock.now }
  public func run(_ body: @escaping @Sendable () -> Void) { loop.run(body) }

  public func run(after delay: Nanoseconds, _ body: @escaping @Sendable () -> Void) -> ServiceTimer {
    let timer = loop.run(after: max(0, delay), body)
    return ServiceTimer { timer.cancel() }
  }

  public func begin(_ signal: NetWakeSignal, _ work: @escaping @Sendable () -> Void) {
    signal.begin(on: loop, work)
  }
}

/// A clock for tests: time stands still until `advance`, which also runs what is due, in order, on the caller's thread. Calls that are not
/// delayed run with the next `advance`, of zero too. For one thread.
public final class ManualServiceClock: ServiceClock {
  private struct Call {
    var time: Nanoseconds
    var number: Int
    var body: @Sendable () -> Void
  }

  private struct State {
    var now: Nanoseconds = 0
    var made = 0
    var calls: [Call] = []
  }

  private struct Signal {
    var signal: NetWakeSignal
    var work: @Sendable () -> Void
  }

  private let state = Locked(State())
  private let signals = Locked<[Signal]>([])

  /// Creates a clock at the time 0.
  public init() {}

  /// The shared loop: a session on this clock has no sockets.
  public var loop: NetLoop { .shared }
  public var now: Nanoseconds { state.withLock { $0.now } }
  /// When the next call is due; nil: none is.
  public var nextDue: Nanoseconds? { state.withLock { $0.calls.map(\.time).min() } }

  public func run(_ body: @escaping @Sendable () -> Void) { _ = run(after: 0, body) }

  public func run(after delay: Nanoseconds, _ body: @escaping @Sendable () -> Void) -> ServiceTimer {
    let number = state.withLock { state in
      state.made += 1
      state.calls.append(Call(time: state.now &+ max(0, delay), number: state.made, body: body))
      return state.made
    }
    return ServiceTimer { [self] in state.withLock { $0.calls.removeAll { $0.number == number } } }
  }

  /// Signals are looked for with every step of `advance`.
  public func begin(_ signal: NetWakeSignal, _ work: @escaping @Sendable () -> Void) {
    signals.withLock { $0.append(Signal(signal: signal, work: work)) }
  }

  /// Advances the time, and runs what falls due on the way at its own time.
  public func advance(by delay: Nanoseconds) {
    let end = now &+ max(0, delay)
    while true {
      runSignals()
      let next = state.withLock { state -> Call? in
        let due = state.calls.filter { $0.time <= end }.min { ($0.time, $0.number) < ($1.time, $1.number) }
        guard let due else { return nil }
        state.calls.removeAll { $0.number == due.number }
        state.now = max(state.now, due.time)
        return due
      }
      guard let next else { break }
      next.body()
    }
    state.withLock { $0.now = end }
  }

  private func runSignals() {
    for signal in signals.withLock({ $0 }) where signal.signal.take() { signal.work() }
  }
}
