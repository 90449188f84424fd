internal import MillraceCore
internal import MillraceDSP
internal import Synchronization

/// The clock of a playback device as a linear function: which frame it takes at which time.
struct DeviceClock: Equatable {
  /// Increases each time the device restarts at position 0.
  var epoch = 0
  /// A position in frames and its time, in nanoseconds of CLOCK_MONOTONIC.
  var position = 0.0
  var time: Nanoseconds = 0
  /// Frames per nanosecond.
  var rate = 0.0
  /// Delay from taking a frame to hearing it.
  var delay: Nanoseconds = 0

  func position(at now: Nanoseconds) -> Double { position + Double(now &- time) * rate }

  func time(of wanted: Double) -> Nanoseconds {
    time &+ Nanoseconds(((wanted - position) / rate).rounded())
  }

  /// How much faster than its nominal rate the device runs, in parts per million.
  func skew(rate nominal: Int) -> Double { (rate * 1e9 / Double(nominal) - 1) * 1e6 }
}

/// A device clock shared without a lock (a sequence lock): the device's thread writes it, a node reads it. A read that collides with a
/// write returns `.busy`.
final class SharedClock: Sendable {
  private let sequence = Atomic<UInt>(0)
  private let epoch = Atomic<Int>(0)
  private let position = Atomic<UInt64>(0)
  private let time = Atomic<Int64>(0)
  private let rate = Atomic<UInt64>(0)
  private let delay = Atomic<Int64>(0)
  /// Read attempts before the reader keeps the value it has.
  private static let tries = 3

  /// The result of a read.
  enum Reading: Equatable {
    /// The device is not running.
    case none
    /// A write was in progress.
    case busy
    case line(DeviceClock)
  }

  /// Publishes the clock; nil: the device is not running. One thread.
  func publish(_ clock: DeviceClock?) {
    // Sequentially consistent throughout: a few hundred operations a second cost nothing.
    sequence.add(1, ordering: .sequentiallyConsistent)
    let clock = clock ?? DeviceClock(epoch: epoch.load(ordering: .sequentiallyConsistent))
    epoch.store(clock.epoch, ordering: .sequentiallyConsistent)
    position.store(clock.position.bitPattern, ordering: .sequentiallyConsistent)
    time.store(clock.time, ordering: .sequentiallyConsistent)
    rate.store(clock.rate.bitPattern, ordering: .sequentiallyConsistent)
    delay.store(clock.delay, ordering: .sequentiallyConsistent)
    sequence.add(1, ordering: .sequentiallyConsistent)
  }

  /// Reads the clock. Any thread.
  var reading: Reading {
    for _ in 0..<Self.tries {
      let before = sequence.load(ordering: .sequentiallyConsistent)
      let clock = DeviceClock(
        epoch: epoch.load(ordering: .sequentiallyConsistent),
        position: Double(bitPattern: position.load(ordering: .sequentiallyConsistent)),
        time: time.load(ordering: .sequentiallyConsistent),
        rate: Double(bitPattern: rate.load(ordering: .sequentiallyConsistent)),
        delay: delay.load(ordering: .sequentiallyConsistent))
      guard sequence.load(ordering: .sequentiallyConsistent) == before, before % 2 == 0 else { continue }
      return clock.rate > 0 ? .line(clock) : .none
    }
    return .busy
  }
}

/// A change of a device's state, reported by its thread.
enum DeviceEvent: Sendable {
  /// The device disappeared; no audio flows until it returns.
  case lost
  /// The device returned after this many nanoseconds.
  case back(Nanoseconds)

  /// Drops what happened to a device before a node used it. True if the device is gone.
  /// - Parameter next: the next event of its line.
  static func drain(_ next: () -> DeviceEvent?) -> Bool {
    var isLost = false
    while let event = next() {
      if case .lost = event { isLost = true } else { isLost = false }
    }
    return isLost
  }
}
