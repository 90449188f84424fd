internal import NIOCore

/// Accepts connections: not while there is no room for one, and not at once again when the system refused one.
final class HTTPAcceptHandler: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias OutboundIn = any Channel

  /// Time between two attempts to accept when this process may open no more files.
  private static let pause = TimeAmount.seconds(1)

  private let connections: HTTPServerConnections
  private let control: AdmissionControl
  private var isPaused = false

  init(_ connections: HTTPServerConnections, _ control: AdmissionControl) {
    self.connections = connections
    self.control = control
  }

  func handlerRemoved(context: ChannelHandlerContext) { connections.stopAccepting() }

  func read(context: ChannelHandlerContext) {
    let bound = context.loopBound
    connections.read(on: context.eventLoop) { bound.value.read() }
  }

  /// A connection that could not be accepted stays in the system's queue, and is reported again and again: without a pause the thread
  /// would do nothing else. SwiftNIO has a handler for this, but does not use it for servers of this kind.
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
