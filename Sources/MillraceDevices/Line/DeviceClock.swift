internal import MillraceCore
internal import MillraceDSP
internal import Synchronization

/// The clock of a playing device as a line: which of its frames is being taken at which time.
struct DeviceClock: Equatable {
  /// Grows when the device begins anew at position 0.
  var epoch = 0
  /// A position in frames, and its time: nanoseconds of CLOCK_MONOTONIC.
  var position = 0.0
  var time: Nanoseconds = 0
  /// Frames a nanosecond.
  var rate = 0.0
  /// From taking a frame to hearing it.
  var delay: Nanoseconds = 0

  func position(at now: Nanoseconds) -> Double { position + Double(now &- time) * rate }

  func time(of wanted: Double) -> Nanoseconds {
    time &+ Nanoseconds(((wanted - position) / rate).rounded())
  }

  /// How much faster than its nominal rate it runs, in parts per million.
  func skew(rate nominal: Int) -> Double { (rate * 1e9 / Double(nominal) - 1) * 1e6 }
}

/// A device's clock where its thread writes it and a node reads it, without a lock: a reader that meets a writer is told to come
/// again.
final class SharedClock: Sendable {
  private let sequence = Atomic<UInt>(0)
  private let epoch = Atomic<Int>(0)
  private let position = Atomic<UInt64>(0)
  private let time = Atomic<Int64>(0)
  private let rate = Atomic<UInt64>(0)
  private let delay = Atomic<Int64>(0)
  /// Looks a reader takes before it goes on with what it knows.
  private static let tries = 3

  /// What a reader sees.
  enum Reading: Equatable {
    /// The device does not run.
    case none
    /// The writer was at it.
    case busy
    case line(DeviceClock)
  }

  /// Publishes a line; nil: the device does not run. One thread.
  func publish(_ clock: DeviceClock?) {
    // Sequentially consistent throughout: nothing here is done more than some hundred times a second.
    sequence.add(1, ordering: .sequentiallyConsistent)
    let clock = clock ?? DeviceClock(epoch: epoch.load(ordering: .sequentiallyConsistent))
    epoch.store(clock.epoch, ordering: .sequentiallyConsistent)
    position.store(clock.position.bitPattern, ordering: .sequentiallyConsistent)
    time.store(clock.time, ordering: .sequentiallyConsistent)
    rate.store(clock.rate.bitPattern, ordering: .sequentiallyConsistent)
    delay.store(clock.delay, ordering: .sequentiallyConsistent)
    sequence.add(1, ordering: .sequentiallyConsistent)
  }

  /// Reads the line. Any thread.
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

/// What became of a device, told by its thread.
enum DeviceNews: Sendable {
  /// It is gone; nothing comes or goes until it is back.
  case lost
  /// It is there again; so many nanoseconds were lost.
  case back(Nanoseconds)
}
