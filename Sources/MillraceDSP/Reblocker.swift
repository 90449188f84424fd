/// A sample queue that converts between block lengths.
///
/// Bounded: it holds `capacity` samples, all channels together, and takes no more. Check ``room`` before ``write(_:)``, or its
/// result; check ``count`` before ``read(into:)``. One thread at a time; not a queue between threads. No allocation after `init`.
@safe public struct Reblocker<Sample: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
  /// Maximum number of samples.
  public let capacity: Int
  /// Number of samples held.
  @inlinable public var count: Int { written - read }
  /// Number of samples it can take now.
  @inlinable public var room: Int { capacity - count }
  /// Index of the next sample to be read, counted from the last ``reset()``: the basis of timestamps.
  @inlinable public var position: Int { read }

  @usableFromInline let storage: UnsafeMutablePointer<Sample>
  @usableFromInline var written = 0
  @usableFromInline var read = 0

  /// Makes an empty queue of `capacity` samples.
  public init(capacity: Int) {
    precondition(capacity > 0, "the capacity must be positive")
    self.capacity = capacity
    unsafe storage = .allocate(capacity: capacity)
  }

  deinit { unsafe storage.deallocate() }

  /// Appends samples and returns how many fit.
  @inlinable
  public mutating func write(_ samples: Span<Sample>) -> Int {
    let taken = min(samples.count, room)
    guard taken > 0 else { return 0 }
    let place = written % capacity
    let first = min(taken, capacity - place)
    unsafe samples.withUnsafeBufferPointer { source in
      guard let start = source.baseAddress else { return }
      unsafe (storage + place).update(from: start, count: first)
      unsafe storage.update(from: start + first, count: taken - first)
    }
    written += taken
    return taken
  }

  /// Fills all of `output` and returns true; with fewer samples held, changes nothing and returns false.
  @inlinable
  public mutating func read(into output: inout MutableSpan<Sample>) -> Bool {
    guard output.count <= count else { return false }
    take(output.count, into: &output)
    return true
  }

  /// Moves the remaining samples, at most the length of `output`, to its start and returns their number. For the end of a stream.
  @inlinable
  public mutating func drain(into output: inout MutableSpan<Sample>) -> Int {
    let taken = min(count, output.count)
    take(taken, into: &output)
    return taken
  }

  /// Drops up to `samples` of the oldest samples and returns how many.
  @inlinable
  public mutating func skip(_ samples: Int) -> Int {
    let dropped = min(max(samples, 0), count)
    read += dropped
    return dropped
  }

  /// Empties the queue and counts from 0 again.
  @inlinable
  public mutating func reset() {
    written = 0
    read = 0
  }

  @inlinable
  mutating func take(_ wanted: Int, into output: inout MutableSpan<Sample>) {
    guard wanted > 0 else { return }
    let place = read % capacity
    let first = min(wanted, capacity - place)
    unsafe output.withUnsafeMutableBufferPointer { target in
      guard let start = target.baseAddress else { return }
      unsafe start.update(from: storage + place, count: first)
      unsafe (start + first).update(from: storage, count: wanted - first)
    }
    read += wanted
  }
}
