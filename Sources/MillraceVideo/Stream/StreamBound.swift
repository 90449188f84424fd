internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore

/// Ends a library's waiting: at a time, or when somebody says so. Lives longer than the contexts it is attached to, which keep it by
/// its address alone. Any thread.
@safe
final class StreamBound: @unchecked Sendable {
  private let bound: OpaquePointer

  init() {
    guard let bound = unsafe millrace_av_bound_new() else { fatalError("no memory for a stream") }
    unsafe self.bound = unsafe bound
  }

  deinit { unsafe millrace_av_bound_free(bound) }

  /// Makes the context's waiting heed this.
  func attach(to context: UnsafeMutablePointer<AVFormatContext>) {
    unsafe millrace_av_bound_attach(bound, context)
  }

  /// What waits from now on waits for so long at most.
  func allow(_ time: Nanoseconds) { unsafe millrace_av_bound_set_deadline(bound, time) }

  /// Ends what waits now, and lets nothing wait again.
  func cancel() { unsafe millrace_av_bound_cancel(bound) }

  /// Whether the time is over or somebody has cancelled.
  var isReached: Bool { unsafe millrace_av_bound_is_reached(bound) }
}
