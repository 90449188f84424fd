internal import MillraceCore

/// The timers of one worker: a hashed timing wheel of one-millisecond slots with absolute deadlines.
///
/// Arming and cancelling take constant time and allocate nothing: the lists are intrusive. Deadlines are rounded up to the next
/// millisecond, so that the timers of many instances share one wake-up of the thread. Only the worker may use it.
@unsafe
struct TimerWheel: ~Copyable {
  static let tick: Nanoseconds = 1_000_000
  /// The latest deadline, some 146 years ahead: a later one would overflow when rounded, and fire at once.
  static let farthest = Nanoseconds.max / 2
  private static let slotCount = 512
  private let slots: UnsafeMutablePointer<UnsafeMutablePointer<Cell>?>
  private let occupied: UnsafeMutablePointer<UInt64>
  private(set) var count = 0
  /// Every slot up to and including this tick has been searched.
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

  /// Arms the cell's timer for a deadline on the worker's clock, at most `farthest`; replaces an earlier one.
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

  /// Cancels the cell's timer, if armed.
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

  /// Removes one due timer and returns its cell; nil when none is left. Call until nil.
  mutating func takeDue(now: Nanoseconds) -> UnsafeMutablePointer<Cell>? {
    let last = unsafe now / Self.tick
    guard unsafe count > 0 else {
      unsafe handled = max(handled, last)
      return nil
    }
    // After a long sleep one pass over all slots finds every timer.
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

  /// As `takeDue`, for a virtual clock, where a timer is due at its exact deadline.
  mutating func takeExactlyDue(now: Nanoseconds) -> UnsafeMutablePointer<Cell>? {
    guard unsafe count > 0 else { return nil }
    // The clock stops only at deadlines, so due timers are in the slot of this time, or in the first unhandled one, where late requests go.
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
    // A manual loop: iterating a range of Int64 allocates in debug builds.
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
