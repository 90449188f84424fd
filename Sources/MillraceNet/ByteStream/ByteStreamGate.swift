internal import NIOCore
internal import NIOSSL
internal import NIOTLS

/// The first handler of a byte stream that a server accepts: waits for TLS, applies the admission rules, asks the server's code, and
/// makes the stream.
///
/// ```
/// (TLS) ▸ ByteStreamGate          half-open, until the TLS handshake is complete or times out; without TLS for an instant
/// (TLS) ▸ ByteStreamHandler       open
/// ```
final class ByteStreamGate: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let control: AdmissionControl
  private let address: AdmissionCount.Address
  private let peer: String
  private let isSecure: Bool
  private let limits: ByteStreamLimits
  private let decide: @Sendable (ByteStreamServer.Client) -> ByteStreamServer.Decision
  private var deadline: LoopTimer?
  private var isOpen = false
  private var isRefused = false

  private init(
    _ control: AdmissionControl, _ channel: any Channel, isSecure: Bool, _ limits: ByteStreamLimits,
    _ decide: @escaping @Sendable (ByteStreamServer.Client) -> ByteStreamServer.Decision
  ) {
    self.control = control
    address = AdmissionCount.address(channel.remoteAddress?.ipAddress)
    peer = AdmittedPeer.name(of: channel)
    self.isSecure = isSecure
    self.limits = limits
    self.decide = decide
  }

  /// Counts a connection that TCP has accepted, and adds its handlers.
  /// - Throws: why it is refused, which closes it: a byte stream has no words for a refusal.
  static func install(
    on channel: any Channel, _ context: NIOSSLContext?, _ control: AdmissionControl,
    _ limits: ByteStreamLimits,
    _ decide: @escaping @Sendable (ByteStreamServer.Client) -> ByteStreamServer.Decision
  ) throws {
    let gate = ByteStreamGate(control, channel, isSecure: context != nil, limits, decide)
    if let refusal = control.arrive(from: gate.address) {
      control.note(refusal, from: gate.peer)
      throw refusal
    }
    let bound = NIOLoopBound(gate, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in bound.value.leave() }
    let pipeline = channel.pipeline.syncOperations
    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
    try pipeline.addHandler(gate)
  }

  private func leave() {
    deadline?.cancel()
    control.close(from: address, wasOpen: isOpen)
  }

  func channelActive(context: ChannelHandlerContext) {
    context.fireChannelActive()
    if isSecure { limitTime(context) } else { admit(context) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if case .handshakeCompleted? = event as? TLSUserEvent { admit(context) }
  }

  /// A failed handshake. Later errors are the stream's.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if isOpen { context.fireErrorCaught(error) } else { context.close(promise: nil) }
  }

  private func limitTime(_ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    deadline = LoopTimer(on: context.eventLoop, in: .milliseconds(Int64(limits.open))) {
      let (gate, context) = bound.value
      gate.refuse(
        .timeout, "a TLS handshake must be complete within \(gate.limits.open) ms", context)
    }
  }

  private func admit(_ context: ChannelHandlerContext) {
    guard !isOpen && !isRefused else { return }
    deadline?.cancel()
    if let refusal = control.open(from: address) {
      refuse(refusal.kind, refusal.text, context)
      return
    }
    isOpen = true
    switch decide(ByteStreamServer.Client(peer: peer)) {
    case .refuse(let text): refuse(.decision, text, context)
    case .accept(let receive):
      do { try ByteStream.accept(context.channel, limits, peer: peer, receive) } catch {
        context.close(promise: nil)
      }
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
  }

  private func refuse(
    _ kind: ServerAdmission.Refusal.Kind, _ text: String, _ context: ChannelHandlerContext
  ) {
    isRefused = true
    control.note(ServerAdmission.Refusal(kind: kind, status: nil, text: text), from: peer)
    context.close(promise: nil)
  }
}
