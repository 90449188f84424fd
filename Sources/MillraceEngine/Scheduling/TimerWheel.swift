internal import MillraceCore

/// The timers of one worker: a hashed wheel of one-millisecond slots with absolute deadlines.
///
/// Arming and cancelling are constant and allocate nothing: the list links live in the cells. A deadline is rounded up to the
/// next millisecond, so that the timers of many instances share one wake-up of the thread. Only the worker may use it.
@unsafe
struct TimerWheel: ~Copyable {
  static let tick: Nanoseconds = 1_000_000
  /// Later than this, some 146 years on, no timer is armed: a deadline beyond it would wrap around where it is rounded, and
  /// come at once.
  static let farthest = Nanoseconds.max / 2
  private static let slotCount = 512
  private let slots: UnsafeMutablePointer<UnsafeMutablePointer<Cell>?>
  private let occupied: UnsafeMutablePointer<UInt64>
  private(set) var count = 0
  /// Every slot up to and with this tick has been looked through.
  private var handled: Int64

  init(now: Nanoseconds) {
    unsafe slots = .allocate(capacity: Self.slotCount)
    unsafe slots.initialize(repeating: nil, count: Self.slotCount)
    unsafe occupied = .allocate(capacity: Self.slotCount / 64)
    unsafe occupied.initialize(repeating: 0, count: Self.slotCount / 64)
    unsafe handled = now / Self.tick - 1
  }

  deinit {
    unsafe slots.deallocate()
    unsafe occupied.deallocate()
  }

  /// A time on a graph's clock as a deadline on the worker's, no later than `farthest`.
  static func deadline(_ time: Nanoseconds, after epoch: Nanoseconds) -> Nanoseconds {
    let (sum, isBeyond) = time.addingReportingOverflow(epoch)
    return unsafe isBeyond ? farthest : min(sum, farthest)
  }

  /// Arms the cell's timer for a deadline on the worker's clock, in place of an older one. At most `farthest`.
  mutating func arm(_ cell: UnsafeMutablePointer<Cell>, at deadline: Nanoseconds) {
    if unsafe cell.pointee.isInWheel { unsafe cancel(cell) }
    let tick = unsafe max((deadline &+ (Self.tick - 1)) / Self.tick, handled &+ 1)
    unsafe cell.pointee.timerDeadline = deadline
    unsafe cell.pointee.timerTick = tick
    let slot = unsafe Int(tick) & (Self.slotCount - 1)
    let first = unsafe slots[slot]
    unsafe cell.pointee.timerPrevious = nil
    unsafe cell.pointee.timerNext = unsafe first
    if let first = unsafe first { unsafe first.pointee.timerPrevious = unsafe cell }
    unsafe slots[slot] = unsafe cell
    unsafe occupied[slot &>> 6] |= 1 &<< UInt64(slot & 63)
    unsafe cell.pointee.isInWheel = true
    unsafe count &+= 1
  }

  /// Takes the cell's timer out, if it is armed.
  mutating func cancel(_ cell: UnsafeMutablePointer<Cell>) {
    guard unsafe cell.pointee.isInWheel else { return }
    let slot = unsafe Int(cell.pointee.timerTick) & (Self.slotCount - 1)
    let next = unsafe cell.pointee.timerNext
    if let previous = unsafe cell.pointee.timerPrevious {
      unsafe previous.pointee.timerNext = unsafe next
    } else {
      unsafe slots[slot] = unsafe next
      if unsafe next == nil { unsafe occupied[slot &>> 6] &= ~(1 &<< UInt64(slot & 63)) }
    }
    if let next = unsafe next { unsafe next.pointee.timerPrevious = unsafe cell.pointee.timerPrevious }
    unsafe cell.pointee.isInWheel = false
    unsafe count &-= 1
  }

  /// Takes out one timer that is due and answers its cell; nil when none is left. Call until nil.
  mutating func takeDue(now: Nanoseconds) -> UnsafeMutablePointer<Cell>? {
    let last = unsafe now / Self.tick
    guard unsafe count > 0 else {
      unsafe handled = max(handled, last)
      return nil
    }
    // After a long sleep one round over all slots sees every timer.
    unsafe handled = max(handled, last &- Int64(Self.slotCount))
    while unsafe handled < last {
      let slot = unsafe Int(handled &+ 1) & (Self.slotCount - 1)
      if unsafe occupied[slot &>> 6] & (1 &<< UInt64(slot & 63)) != 0 {
        var next = unsafe slots[slot]
        while let cell = unsafe next {
          if unsafe cell.pointee.timerTick <= last {
            unsafe cancel(cell)
            return unsafe cell
          }
          unsafe next = unsafe cell.pointee.timerNext
        }
      }
      unsafe handled &+= 1
    }
    return nil
  }

  /// The same on a virtual clock, where a timer is due at its exact deadline.
  mutating func takeExactlyDue(now: Nanoseconds) -> UnsafeMutablePointer<Cell>? {
    guard unsafe count > 0 else { return nil }
    // The clock only ever stops at deadlines, so what is due lies in the slot of this time, or in the first one not yet
    // handled, where late wishes go.
    let tick = unsafe (now &+ (Self.tick - 1)) / Self.tick
    if let cell = unsafe takeExactlyDue(slot: handled &+ 1, now) { return unsafe cell }
    if let cell = unsafe takeExactlyDue(slot: tick, now) { return unsafe cell }
    unsafe handled = max(handled, tick &- 1)
    return nil
  }

  private mutating func takeExactlyDue(slot tick: Int64, _ now: Nanoseconds) -> UnsafeMutablePointer<Cell>? {
    var next = unsafe slots[Int(tick) & (Self.slotCount - 1)]
    while let cell = unsafe next {
      if unsafe cell.pointee.timerDeadline <= now {
        unsafe cancel(cell)
        return unsafe cell
      }
      unsafe next = unsafe cell.pointee.timerNext
    }
    return nil
  }

  /// When the earliest timer fires: the end of its millisecond, or its exact deadline.
  func earliest(exact: Bool) -> Nanoseconds? {
    guard unsafe count > 0 else { return nil }
    var best: Nanoseconds?
    let start = unsafe handled &+ 1
    // A loop by hand: a range of Int64 asks the heap for memory in debug builds.
    var offset: Int64 = -1
    while unsafe offset < Int64(Self.slotCount) - 1 {
      offset &+= 1
      let slot = unsafe Int(start &+ offset) & (Self.slotCount - 1)
      if unsafe occupied[slot &>> 6] & (1 &<< UInt64(slot & 63)) == 0 { continue }
      var next = unsafe slots[slot]
      while let cell = unsafe next {
        let time = unsafe exact ? cell.pointee.timerDeadline : cell.pointee.timerTick &* Self.tick
        best = min(best ?? time, time)
        unsafe next = unsafe cell.pointee.timerNext
      }
      // A timer of this round is earlier than all timers of later slots and rounds.
      if let best, unsafe best <= (start &+ offset) &* Self.tick { return best }
    }
    return best
  }
}
