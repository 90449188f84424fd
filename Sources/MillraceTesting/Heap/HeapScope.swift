internal import CMallocCount

/// Counts the heap requests of the calling thread, to prove that code makes none.
///
/// ```swift
/// let requests = HeapScope.count(warmup: 10, calls: 10_000) { work() }
/// #expect(requests == 0)
/// ```
///
/// Under a sanitizer, requests cannot be counted: every count is 0 and `isCounting` is false. Add
/// `.enabled(if: HeapScope.isCounting, HeapScope.skipReason)` to the test, so that it is reported as skipped, not as passed.
public struct HeapScope: ~Copyable {
  private let before: UInt64

  /// Starts counting on this thread.
  public init() { before = millrace_malloc_thread_requests() }

  /// Requests of this thread since the scope was created. Call it on the thread that created the scope.
  public var requests: Int { Int(millrace_malloc_thread_requests() - before) }

  /// True when requests are counted in this process.
  public static var isCounting: Bool { millrace_malloc_counting_available() != 0 }

  /// The reason to give for a skipped test.
  public static let skipReason = "heap requests are not counted under a sanitizer"

  /// Heap requests of the calling thread while the body runs `calls` times, after `warmup` runs that are not counted.
  public static func count<E: Error>(
    warmup: Int = 0, calls: Int = 1, _ body: () throws(E) -> Void
  ) throws(E) -> Int {
    for _ in 0..<warmup { try body() }
    let scope = HeapScope()
    for _ in 0..<calls { try body() }
    return scope.requests
  }
}

/// Heap requests of the calling thread while the body runs.
public func countHeapRequests<E: Error>(_ body: () throws(E) -> Void) throws(E) -> Int {
  try HeapScope.count(body)
}
