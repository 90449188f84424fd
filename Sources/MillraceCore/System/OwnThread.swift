internal import CMillraceSys
internal import Glibc

/// Threads that belong to a node and outlive it by as long as their work takes.
package enum OwnThread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Runs the body on a new thread. False when the system has none left.
  package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
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
      return false
    }
    pthread_detach(thread)
    return true
  }
}
