internal import MillraceCore

/// The timers of one worker: a hashed wheel of one-millisecond slots with absolute deadlines.
///
/// Arming and cancelling are constant and allocate nothing: the list links live in the cells. A deadline is rounded up to the
/// next millisecond, so that the timers of many instances share one wake-up of the thread. Only the worker may use it.
@unsafe
struct TimerWheel: ~Copyable {
  static let tick: Nanoseconds = 1_000_000
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

  /// Arms the cell's timer for a deadline on the worker's clock, in place of an older one.
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

  /// Takes out every timer that is due and hands its cell to `fire`.
  mutating func expire(now: Nanoseconds, _ fire: (UnsafeMutablePointer<Cell>) -> Void) {
    let last = unsafe now / Self.tick
    if unsafe count == 0 {
      unsafe handled = max(handled, last)
      return
    }
    // After a long sleep one round over all slots sees every timer.
    var tick = unsafe max(handled &+ 1, last &- Int64(Self.slotCount) &+ 1)
    while tick <= last {
      let slot = unsafe Int(tick) & (Self.slotCount - 1)
      if unsafe occupied[slot &>> 6] & (1 &<< UInt64(slot & 63)) != 0 {
        unsafe expire(slot: slot, last, fire)
      }
      tick &+= 1
    }
    unsafe handled = max(handled, last)
  }

  private mutating func expire(slot: Int, _ last: Int64, _ fire: (UnsafeMutablePointer<Cell>) -> Void) {
    var next = unsafe slots[slot]
    while let cell = unsafe next {
      unsafe next = unsafe cell.pointee.timerNext
      if unsafe cell.pointee.timerTick <= last {
        unsafe cancel(cell)
        unsafe fire(cell)
      }
    }
  }

  /// On a virtual clock: takes out every timer whose exact deadline has come.
  mutating func expireExactly(now: Nanoseconds, _ fire: (UnsafeMutablePointer<Cell>) -> Void) {
    let tick = unsafe (now &+ (Self.tick - 1)) / Self.tick
    for candidate in unsafe [handled &+ 1, tick] {
      var next = unsafe slots[Int(candidate) & (Self.slotCount - 1)]
      while let cell = unsafe next {
        unsafe next = unsafe cell.pointee.timerNext
        if unsafe cell.pointee.timerDeadline <= now {
          unsafe cancel(cell)
          unsafe fire(cell)
        }
      }
    }
    unsafe handled = max(handled, tick &- 1)
  }

  /// When the earliest timer fires: the end of its millisecond, or its exact deadline.
  func earliest(exact: Bool) -> Nanoseconds? {
    guard unsafe count > 0 else { return nil }
    var best: Nanoseconds?
    let start = unsafe handled &+ 1
    for offset in unsafe 0..<Int64(Self.slotCount) {
      let slot = unsafe Int(start &+ offset) & (Self.slotCount - 1)
      if unsafe occupied[slot &>> 6] & (1 &<< UInt64(slot & 63)) == 0 { continue }
      var next = unsafe slots[slot]
      while let cell = unsafe next {
        let time = unsafe exact ? cell.pointee.timerDeadline : cell.pointee.timerTick &* Self.tick
        if best.map({ time < $0 }) ?? true { best = time }
        unsafe next = unsafe cell.pointee.timerNext
      }
      // A timer of this round is earlier than all timers of later slots and rounds.
      if let best, unsafe best <= (start &+ offset) &* Self.tick { return best }
    }
    return best
  }
}
