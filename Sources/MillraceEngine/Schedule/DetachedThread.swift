internal import CMillraceSys
internal import Glibc

/// Runs `body` on a new thread of its own. The process need not wait for it. 0, or the `errno` of the system's refusal.
package func startDetachedThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
  let parcel = unsafe Unmanaged.passRetained(ThreadBody(name: name, body: body))
  var thread = pthread_t()
  let status = unsafe pthread_create(
    &thread, nil,
    { argument in
      let start = unsafe Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
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

private final class ThreadBody: Sendable {
  let name: String
  let body: @Sendable () -> Void
  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }
}
