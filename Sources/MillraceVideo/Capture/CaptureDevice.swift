internal import MillraceCore

/// A screen or a camera that is being read. Releasing it ends that, after the picture it waits for.
package final class CaptureDevice: Sendable {
  let thread: CaptureThread
  /// The name in messages.
  let name: String

  /// Opens it. Blocks; any thread but a worker.
  /// - Throws: why it cannot be captured, and the cure.
  init(_ input: Demuxer.Source, waker: Waker) throws(NodeProblem) {
    thread = try CaptureThread.start(input, waker: waker)
    name = input.name
  }

  deinit { thread.stop() }
}
