internal import CMillraceSys
internal import Glibc

/// Threads that are never joined: each ends with its work and may outlive its creator.
package enum DetachedThread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Runs the body on a new thread. Returns 0, or the `errno` when the system could not create one.
  ///
  /// - Parameter name: what debuggers and `top` call the thread; Linux shows 15 bytes of it.
  package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
    let parcel = unsafe Unmanaged.passRetained(Start(name, body))
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        unsafe start.name.withCString { unsafe millrace_name_thread($0) }
        start.body()
        return nil
      }, parcel.toOpaque())
    guard status == 0 else {
      unsafe parcel.release()
      return status
    }
    return pthread_detach(thread)
  }
}
