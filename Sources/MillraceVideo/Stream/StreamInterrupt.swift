internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore

/// Interrupts blocking calls of the library: at a deadline, or on cancellation. Outlives the contexts it is attached to, which hold only its
/// address. Any thread.
@safe
final class StreamInterrupt: @unchecked Sendable {
  private let bound: OpaquePointer

  init() {
    guard let bound = unsafe millrace_av_bound_new() else { fatalError("no memory for a stream") }
    unsafe self.bound = unsafe bound
  }

  deinit { unsafe millrace_av_bound_free(bound) }

  /// Attaches this to a context.
  func attach(to context: UnsafeMutablePointer<AVFormatContext>) {
    unsafe millrace_av_bound_attach(bound, context)
  }

  /// Limits calls from now on to this time.
  func allow(_ time: Nanoseconds) { unsafe millrace_av_bound_set_deadline(bound, time) }

  /// Interrupts current calls, and all later ones.
  func cancel() { unsafe millrace_av_bound_cancel(bound) }

  /// True after the deadline or cancellation.
  var isReached: Bool { unsafe millrace_av_bound_is_reached(bound) }
}
