import CMillraceSys
import Glibc
import MillraceCore
import Synchronization

/// A network as calls see it: what it loses, and how long it takes.
struct LossyNetwork: Sendable {
  /// The share of datagrams that are lost in each direction; less than bursts of that length can make of it, which is 0.75 for 3.
  var loss = 0.05
  /// Datagrams of a burst of losses, on average.
  var burst = 3.0
  /// There and back.
  var roundTrip = 0.06
  /// Selects the sequence of losses.
  var seed: UInt64 = 1

  /// One direction, in nanoseconds.
  var delay: Int64 { Int64(roundTrip * 0.5e9) }
}

/// A UDP path between two ends on this machine that loses datagrams in bursts and delays the others by a fixed time. To each end it looks
/// like the other end's address.
///
/// Losses follow a two-state chain (Gilbert, 1960): a burst begins with the probability that gives the wanted share, and each further
/// datagram continues it. Order is kept. Delays are exact to a millisecond, the resolution of poll(2).
final class LossyLink: Sendable {
  /// Where the calling end finds the other, and the called end finds the caller.
  let callerPort: Int
  let calleePort: Int

  private let callerSide: Int32
  private let calleeSide: Int32
  private let network: LossyNetwork
  /// The ports of the ends themselves; 0: not known yet.
  private let caller = Atomic<Int>(0)
  private let callee = Atomic<Int>(0)
  /// The present share of losses, in millionths.
  private let loss: Atomic<Int>
  private let carried = Atomic<Int>(0)
  private let lost = Atomic<Int>(0)
  private let isOver = Atomic<Bool>(false)

  private static let million = 1e6
  /// Milliseconds after which an idle link looks whether it was stopped.
  private static let idle: Int64 = 20
  /// More than a datagram of a call has.
  private static let largest = 2_048

  init(_ network: LossyNetwork) throws {
    self.network = network
    loss = Atomic(Int(network.loss * Self.million))
    let one = try LocalSocket.datagrams()
    callerSide = one.descriptor
    callerPort = one.port
    let other: (descriptor: Int32, port: Int)
    do { other = try LocalSocket.datagrams() } catch {
      close(one.descriptor)
      throw error
    }
    calleeSide = other.descriptor
    calleePort = other.port
    let code = DetachedThread.start("lossy-link") { [self] in carry() }
    guard code == 0 else {
      close(one.descriptor)
      close(other.descriptor)
      throw MeasurementProblem("no thread for a link (errno \(code))")
    }
  }

  /// Sets where an end is.
  func set(callerAt port: Int) { caller.store(port, ordering: .relaxed) }
  func set(calleeAt port: Int) { callee.store(port, ordering: .relaxed) }

  /// Changes the share of losses.
  func set(loss share: Double) { loss.store(Int(share * Self.million), ordering: .relaxed) }

  /// How many datagrams were carried and lost so far, in both directions together.
  var counts: (carried: Int, lost: Int) {
    (carried.load(ordering: .relaxed), lost.load(ordering: .relaxed))
  }

  /// The share of datagrams that were lost so far.
  var lossSoFar: Double {
    let (carried, lost) = counts
    return carried + lost == 0 ? 0 : Double(lost) / Double(carried + lost)
  }

  /// Ends the link, soon.
  func stop() { isOver.store(true, ordering: .relaxed) }

  // MARK: The thread

  /// A datagram on its way.
  private struct Held {
    var due: Int64
    var isFromCaller: Bool
    var bytes: [UInt8]
  }

  private func carry() {
    var sockets = [callerSide, calleeSide].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var losses = [Losses(seed: network.seed), Losses(seed: network.seed &+ 1)]
    var held: [Held] = []
    var first = 0
    var buffer = [UInt8](repeating: 0, count: Self.largest)
    while !isOver.load(ordering: .relaxed) {
      let due = first < held.count ? held[first].due - millrace_monotonic_ns() : .max
      let wait = min(Self.idle, max(0, due == .max ? Self.idle : (due + 999_999) / 1_000_000))
      _ = unsafe poll(&sockets, nfds_t(sockets.count), Int32(wait))
      let now = millrace_monotonic_ns()
      for index in sockets.indices where sockets[index].revents & Int16(POLLIN) != 0 {
        let count = unsafe recv(sockets[index].fd, &buffer, buffer.count, 0)
        guard count > 0 else { continue }
        let share = Double(loss.load(ordering: .relaxed)) / Self.million
        guard !losses[index].isNext(share, burst: network.burst) else {
          lost.add(1, ordering: .relaxed)
          continue
        }
        held.append(
          Held(due: now + network.delay, isFromCaller: index == 0, bytes: Array(buffer.prefix(count))))
      }
      while first < held.count, held[first].due <= now {
        pass(held[first])
        held[first].bytes = []
        first += 1
      }
      if first > 512 {
        held.removeFirst(first)
        first = 0
      }
    }
    close(callerSide)
    close(calleeSide)
  }

  private func pass(_ datagram: Held) {
    // What the caller sends comes from the port at which the callee knows it.
    let port =
      datagram.isFromCaller ? callee.load(ordering: .relaxed) : caller.load(ordering: .relaxed)
    guard port > 0 else { return }
    LocalSocket.send(datagram.bytes, from: datagram.isFromCaller ? calleeSide : callerSide, to: port)
    carried.add(1, ordering: .relaxed)
  }

  /// The losses of one direction.
  private struct Losses {
    private var dice: Dice
    private var isBurst = false

    init(seed: UInt64) { dice = Dice(seed: seed) }

    /// Whether the next datagram is lost.
    mutating func isNext(_ share: Double, burst: Double) -> Bool {
      guard share > 0 else {
        isBurst = false
        return false
      }
      let chance = isBurst ? 1 - 1 / burst : share / burst / (1 - share)
      isBurst = (dice.uniform() + 1) / 2 < chance
      return isBurst
    }
  }
}
