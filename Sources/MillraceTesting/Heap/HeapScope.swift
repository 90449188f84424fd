internal import CMallocCount

/// Counts the heap requests of the calling thread, to prove that code makes none.
///
/// ```swift
/// let requests = HeapScope.count(warmup: 10, calls: 10_000) { work() }
/// #expect(requests == 0)
/// ```
///
/// Under a sanitizer nothing can be counted: then every count is 0 and `isCounting` is false. Put
/// `.enabled(if: HeapScope.isCounting, HeapScope.skipReason)` on the test, so that it is reported as skipped, not as passed.
public struct HeapScope: ~Copyable {
  private let before: UInt64

  /// Starts to count on this thread.
  public init() { before = millrace_malloc_thread_requests() }

  /// Requests of this thread since the scope was made. Call it on the thread that made the scope.
  public var requests: Int { Int(millrace_malloc_thread_requests() - before) }

  /// True when requests are counted in this process.
  public static var isCounting: Bool { millrace_malloc_counting_available() != 0 }

  /// What a skipped test should say.
  public static let skipReason = "heap requests are not counted under a sanitizer"

  /// Requests the calling thread made while the body ran `calls` times, after `warmup` runs that are not counted.
  public static func count<E: Error>(
    warmup: Int = 0, calls: Int = 1, _ body: () throws(E) -> Void
  ) throws(E) -> Int {
    for _ in 0..<warmup { try body() }
    let scope = HeapScope()
    for _ in 0..<calls { try body() }
    return scope.requests
  }
}

/// Requests the calling thread made to the heap while the body ran.
public func countHeapRequests<E: Error>(_ body: () throws(E) -> Void) throws(E) -> Int {
  try HeapScope.count(body)
}
