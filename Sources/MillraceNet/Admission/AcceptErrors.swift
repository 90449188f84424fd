internal import NIOCore

/// Reports that this process cannot accept connections, and pauses accepting.
///
/// A connection that could not be accepted stays in the queue, and the system reports it again and again: without a pause the thread
/// would do nothing else. SwiftNIO has a handler for this, but does not use it for servers of this kind.
final class AcceptErrors: ChannelInboundHandler {
  typealias InboundIn = any Channel

  /// The time between two attempts to accept.
  private static let pause = TimeAmount.seconds(1)

  private let control: AdmissionControl
  private var isPaused = false

  init(_ control: AdmissionControl) { self.control = control }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? IOError {
      control.note(
        ServerAdmission.Refusal(
          kind: .descriptors, status: nil, text: NetErrorMessages.text(errno: error.errnoCode)),
        from: "unknown address")
      pause(context)
    }
    context.fireErrorCaught(error)
  }

  private func pause(_ context: ChannelHandlerContext) {
    guard !isPaused else { return }
    isPaused = true
    setReading(false, context.channel)
    let bound = NIOLoopBound((self, context.channel), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.pause) {
      let (handler, channel) = bound.value
      handler.isPaused = false
      handler.setReading(true, channel)
    }
  }

  private func setReading(_ isReading: Bool, _ channel: any Channel) {
    channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The server has stopped accepting anyway.
    }
  }
}
