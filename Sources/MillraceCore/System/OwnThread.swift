internal import CMillraceSys
internal import Glibc

/// Threads that no one waits for: each ends with its work, and may outlive who began it.
package enum OwnThread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Runs the body on a new thread. 0, or the `errno` of the system's refusal: it has no thread left.
  ///
  /// - Parameter name: what debuggers and `top` call the thread; Linux shows 15 bytes of it.
  package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
    let parcel = unsafe Unmanaged.passRetained(Start(name, body))
    var thread = pthread_t()
    let refusal = unsafe pthread_create(
      &thread, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        unsafe start.name.withCString { unsafe millrace_name_thread($0) }
        start.body()
        return nil
      }, parcel.toOpaque())
    guard refusal == 0 else {
      unsafe parcel.release()
      return refusal
    }
    return pthread_detach(thread)
  }
}
