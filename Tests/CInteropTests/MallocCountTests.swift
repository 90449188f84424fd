import CMallocCount
import Glibc
import Testing

/// Heap requests of the calling thread while the body runs.
private func requests(during body: () -> Void) -> UInt64 {
  let before = millrace_malloc_thread_requests()
  body()
  return millrace_malloc_thread_requests() - before
}

/// Keeps the optimiser from removing a request whose memory nobody reads: it cannot see into this function.
@inline(never) @_optimize(none) private func use<Value>(_ value: Value) {}

@Suite(
  "heap request counter",
  .enabled(if: millrace_malloc_counting_available() != 0, "heap requests are not counted under a sanitizer"))
struct MallocCountTests {
  private final class Object { var value = 1 }

  @Test("each kind of C request counts once, and giving back counts nothing")
  func kinds() {
    let kinds: [(String, () -> UnsafeMutableRawPointer?)] = [
      ("malloc", { malloc(100) }),
      ("calloc", { calloc(10, 10) }),
      ("realloc", { realloc(nil, 100) }),
      ("aligned_alloc", { aligned_alloc(64, 128) }),
      ("valloc", { valloc(100) }),
      (
        "posix_memalign",
        {
          var pointer: UnsafeMutableRawPointer?
          return posix_memalign(&pointer, 64, 100) == 0 ? pointer : nil
        }
      ),
    ]
    for (name, request) in kinds {
      var pointer: UnsafeMutableRawPointer?
      #expect(requests { pointer = request() } == 1, "\(name)")
      use(pointer)
      #expect(requests { free(pointer) } == 0, "\(name)")
    }
  }

  @Test("requests of Swift's own runtime count, so its shared library is bound to the counter")
  func runtime() {
    var object: Object?
    #expect(requests { object = Object() } == 1)
    use(object)
    let raw = requests {
      let pointer = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 16)
      pointer.initializeMemory(as: UInt8.self, repeating: 3, count: 64)
      use(pointer)
      pointer.deallocate()
    }
    #expect(raw == 1)
    var array: [Int] = []
    #expect(requests { array.append(Int.random(in: 0..<9)) } >= 1)
    #expect(array.count == 1)
  }

  private func make(_ object: Object) -> UnsafeMutableRawPointer {
    Unmanaged.passUnretained(object).toOpaque()
  }

  @Test("requests made inside the C library count too")
  func insideLibc() {
    let text = Array("the mill race".utf8CString)
    var copy: UnsafeMutablePointer<CChar>?
    #expect(requests { copy = strdup(text) } == 1)
    use(copy)
    free(copy)
  }

  @Test("a loop over memory it already has counts nothing")
  func quietLoop() {
    var samples = [Float](repeating: 0.5, count: 480)
    var sum: Float = 0
    let count = requests {
      for round in 0..<1000 {
        for index in samples.indices { samples[index] *= 0.999 }
        sum += samples[round % 480]
      }
    }
    #expect(count == 0)
    #expect(sum > 0)
  }

  @Test("what another thread requests counts for the process and not for this thread")
  func otherThread() {
    let processBefore = millrace_malloc_process_requests()
    var thread = pthread_t()
    let mine = requests {
      pthread_create(
        &thread, nil,
        { _ in
          for _ in 0..<1000 {
            let pointer = malloc(32)
            use(pointer)
            free(pointer)
          }
          return nil
        }, nil)
      pthread_join(thread, nil)
    }
    #expect(mine < 100)
    #expect(millrace_malloc_process_requests() - processBefore >= 1000)
  }

  @Test("bytes taken and given back balance, through growth too")
  func bytes() {
    // All before the first #expect, which may make the runtime allocate what it keeps.
    let before = millrace_malloc_thread_bytes()
    var pointer = malloc(1000)
    use(pointer)
    let small = millrace_malloc_thread_bytes() - before
    pointer = realloc(pointer, 100_000)
    use(pointer)
    let held = millrace_malloc_thread_bytes() - before
    let ofProcess = millrace_malloc_process_bytes()
    free(pointer)
    let after = millrace_malloc_thread_bytes()
    #expect(small >= 1000)
    #expect(held >= 100_000 && held < 110_000)
    #expect(ofProcess >= 100_000)
    #expect(after == before)
  }

  @Test("an alignment that is no power of two is refused, with no word in errno")
  func badAlignment() {
    var pointer: UnsafeMutableRawPointer?
    errno = 0
    #expect(posix_memalign(&pointer, 24, 100) == EINVAL)
    #expect(errno == 0)
    #expect(pointer == nil)
  }

  @Test("a request too large to serve counts, and holds no bytes")
  func refused() {
    let before = millrace_malloc_thread_bytes()
    // Held in a variable, so that the compiler does not warn of the impossible size.
    let size = Int.max / 2
    var pointer: UnsafeMutableRawPointer?
    #expect(requests { pointer = malloc(size) } == 1)
    #expect(pointer == nil)
    #expect(millrace_malloc_thread_bytes() == before)
  }
}
