internal import MillraceCore

/// The strands of one worker that drain at a given time, earliest first.
///
/// An intrusive list: adding and removing allocate nothing. Runs of the same length that start in order are appended in constant
/// time. Only the worker may use it.
@safe
struct DrainQueue: ~Copyable {
  private var first: Unmanaged<Strand>?
  private var last: Unmanaged<Strand>?

  init() {
    unsafe first = nil
    unsafe last = nil
  }

  /// When the first strand is due, on the worker's clock; nil when empty.
  var earliest: Nanoseconds? { unsafe first?._withUnsafeGuaranteedRef { unsafe $0.drainEntry.time } }

  /// Adds a strand, or changes its time.
  mutating func add(_ strand: Strand, at time: Nanoseconds) {
    remove(strand)
    var before = unsafe last
    while let earlier = unsafe before,
      unsafe earlier._withUnsafeGuaranteedRef({ unsafe $0.drainEntry.time > time })
    {
      unsafe before = unsafe earlier._withUnsafeGuaranteedRef { unsafe $0.drainEntry.previous }
    }
    let after =
      unsafe before.map { unsafe $0._withUnsafeGuaranteedRef { unsafe $0.drainEntry.next } } ?? first
    unsafe strand.drainEntry = unsafe DrainEntry(time: time, previous: before, next: after, isQueued: true)
    unsafe join(before, Unmanaged.passUnretained(strand))
    unsafe join(Unmanaged.passUnretained(strand), after)
  }

  /// Removes a strand, if present.
  mutating func remove(_ strand: Strand) {
    let old = unsafe strand.drainEntry
    guard unsafe old.isQueued else { return }
    unsafe strand.drainEntry = unsafe DrainEntry()
    unsafe join(old.previous, old.next)
  }

  /// Removes one strand that is due; nil when none is left. Call until nil.
  mutating func takeDue(now: Nanoseconds) -> Unmanaged<Strand>? {
    guard let earliest, earliest <= now, let strand = unsafe first else { return nil }
    unsafe strand._withUnsafeGuaranteedRef { remove($0) }
    return unsafe strand
  }

  private mutating func join(_ left: Unmanaged<Strand>?, _ right: Unmanaged<Strand>?) {
    if let left = unsafe left {
      unsafe left._withUnsafeGuaranteedRef { unsafe $0.drainEntry.next = unsafe right }
    } else {
      unsafe first = unsafe right
    }
    if let right = unsafe right {
      unsafe right._withUnsafeGuaranteedRef { unsafe $0.drainEntry.previous = unsafe left }
    } else {
      unsafe last = unsafe left
    }
  }
}

/// A strand's list node in its worker's `DrainQueue`.
@unsafe
struct DrainEntry {
  /// On the worker's clock.
  var time = Nanoseconds.max
  var previous: Unmanaged<Strand>?
  var next: Unmanaged<Strand>?
  var isQueued = false

  init() {
    unsafe previous = nil
    unsafe next = nil
  }

  init(time: Nanoseconds, previous: Unmanaged<Strand>?, next: Unmanaged<Strand>?, isQueued: Bool) {
    unsafe self.time = time
    unsafe self.previous = unsafe previous
    unsafe self.next = unsafe next
    unsafe self.isQueued = isQueued
  }
}
