internal import NIOCore
internal import NIOSSL
internal import NIOTLS

/// The last handler in the pipeline of a byte stream, client or server: its two directions, back-pressure, and the end.
///
/// All of it runs on the event loop.
///
/// ```
/// opening ──begin──▸ open ──close──▸ closing ──the peer ends its direction, or the time is up──▸ closed
///                      └── both directions ended, an error, or cancelled ──▸ closed
/// ```
///
/// While closing, what arrives is discarded. The time runs too once both directions are to end without `close`: a peer that takes no more
/// bytes does not keep the connection open for ever.
///
/// SwiftNIO turns an end of this direction that follows the peer's into a close of the channel, which loses what waits to be sent. So the
/// direction is ended only when nothing waits.
final class ByteStreamHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase {
    /// The pipeline is not complete, or the TLS handshake not over.
    case opening
    case open
    /// `close` was called; the end to report.
    case closing(ByteStreamEnd)
    /// The end was handed to the delivery. What arrives later is discarded.
    case closed
  }

  private let limits: ByteStreamLimits
  private let peer: String
  private let host: String
  private let sent: (Int) -> Void
  private let delivery: ByteStreamDelivery
  private var phase = Phase.opening
  private var context: ChannelHandlerContext?
  private var deadline: LoopTimer?

  /// The peer has ended its direction.
  private var isInputOver = false
  /// This side has ended its direction; bytes may still wait to be sent.
  private var isOutputOver = false
  /// The FIN or the close alert has been handed to the system: nothing waits to be sent.
  private var isOutputShut = false
  /// This side ended its direction before the peer did.
  private var isFirst = false
  /// Bytes that wait to be sent.
  private var unsent = 0
  /// Bytes that could not be sent.
  private var lost = 0

  private var lastReceived = NIODeadline.now()
  private var silence: LoopTimer?

  /// - Parameters:
  ///   - peer: its name in messages.
  ///   - host: the name its certificate must be valid for.
  ///   - sent: receives the number of bytes that were sent or lost.
  ///   - sink: receives the events.
  init(
    _ limits: ByteStreamLimits, peer: String, host: String, sent: @escaping (Int) -> Void,
    sink: @escaping (ByteStreamEvent) -> Void
  ) {
    self.limits = limits
    self.peer = peer
    self.host = host
    self.sent = sent
    delivery = ByteStreamDelivery(sink)
  }

  // MARK: Beginning

  /// True once `opened` was reported.
  var isOpen: Bool {
    if case .opening = phase { return false }
    return true
  }

  /// True while bytes can be sent. None behind lost ones, and none on a connection that is gone but whose end was not read yet.
  var canSend: Bool {
    guard case .open = phase, let context else { return false }
    return !isOutputOver && lost == 0 && context.channel.isActive
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  /// Breaks the retain cycle between the context and its handler.
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  /// The pipeline is complete, and secure: bytes are delivered and may be sent.
  func begin() {
    guard case .opening = phase else { return }
    phase = .open
    lastReceived = .now()
    watchSilence(in: .milliseconds(Int64(limits.silence)))
    if delivery.isPaused { setReading(false) }
    delivery.begin()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted? = event as? TLSUserEvent { begin() }
    if case .inputClosed? = event as? ChannelEvent { peerFinishes() }
    context.fireUserInboundEventTriggered(event)
  }

  // MARK: Receiving

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastReceived = .now()
    guard !isInputOver else { return }
    switch phase {
    case .opening, .open: delivery.add(.bytes(Array(unwrapInboundIn(data).readableBytesView)))
    case .closing, .closed: break
    }
  }

  private func peerFinishes() {
    guard !isInputOver else { return }
    isInputOver = true
    switch phase {
    case .opening: delivery.add(.finished)
    case .open:
      if isOutputOver { startDeadline() }
      delivery.add(.finished)
      if isOutputShut { disconnect() }
    case .closing: if isOutputShut { disconnect() }
    case .closed: break
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    switch phase {
    case .opening:
      finish(ByteStreamEnd(problem: NetError(.lost, "\(peer) closed the connection before it was open")))
    case .open where isOutputShut:
      // SwiftNIO does not report the peer's end when it is the second one.
      if !isInputOver { delivery.add(.finished) }
      finish(ByteStreamEnd(isLocal: isFirst))
    case .open: finish(ByteStreamEnd(problem: NetError(.lost, "connection to \(peer) lost")))
    case .closing(let end): finishClosing(end)
    case .closed: break
    }
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch phase {
    case .opening, .open: finish(ByteStreamEnd(problem: problem(of: error)))
    // The peer has what it was sent, or it does not want it.
    case .closing(let end): finishClosing(end)
    case .closed: break
    }
    disconnect()
  }

  private func problem(of error: any Error) -> NetError {
    if case .open = phase, case .uncleanShutdown? = error as? NIOSSLError {
      // After the peer's close alert this only means that TCP is gone.
      if isInputOver { return NetError(.lost, "connection to \(peer) lost") }
      return NetError(
        .lost, "\(peer) closed the connection without a TLS close alert: bytes may be missing at the end")
    }
    return NetErrorMessages.error(error, peer, host)
  }

  // MARK: Back-pressure

  /// Pauses or resumes reading. Unread bytes fill the system's buffers, and then the peer has to wait.
  func setPaused(_ isPaused: Bool) {
    guard delivery.isPaused != isPaused else { return }
    // The handshake has to be read, and so has the peer's end once this side closes.
    if case .open = phase {
      setReading(!isPaused)
      lastReceived = .now()
    }
    delivery.setPaused(isPaused)
  }

  private func setReading(_ isReading: Bool) {
    guard let context else { return }
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The channel is closed and does not read anyway.
    }
    if isReading { context.read() }
  }

  private func watchSilence(in time: TimeAmount) {
    guard limits.silence > 0, let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    silence = LoopTimer(on: context.eventLoop, in: time) { bound.value.checkSilence() }
  }

  private func checkSilence() {
    guard case .open = phase, !isInputOver, let context else { return }
    let limit = TimeAmount.milliseconds(Int64(limits.silence))
    let left = lastReceived + limit - NIODeadline.now()
    guard !delivery.isPaused && left <= .zero else {
      watchSilence(in: delivery.isPaused ? limit : left)
      return
    }
    // After this thread or the machine was suspended, bytes may have arrived without having been read: read first.
    let (bound, last) = (NIOLoopBound(self, eventLoop: context.eventLoop), lastReceived)
    silence = LoopTimer(on: context.eventLoop, in: .milliseconds(1)) { bound.value.endIfSilent(since: last) }
  }

  private func endIfSilent(since last: NIODeadline) {
    guard case .open = phase, !isInputOver else { return }
    guard lastReceived == last && !delivery.isPaused else {
      watchSilence(in: .milliseconds(Int64(limits.silence)))
      return
    }
    let problem = NetError(.unresponsive, "\(peer) sent nothing for \(limits.silence) ms")
    finish(ByteStreamEnd(problem: problem))
    disconnect()
  }

  // MARK: Sending

  /// Sends bytes; returns false when they are discarded because they cannot be sent.
  func send(_ bytes: [UInt8]) -> Bool {
    guard canSend, let context else { return false }
    unsent += bytes.count
    let promise = context.eventLoop.makePromise(of: Void.self)
    let (bound, count) = (NIOLoopBound(self, eventLoop: context.eventLoop), bytes.count)
    promise.futureResult.whenComplete { result in
      if case .failure = result { bound.value.lost += count }
      bound.value.noteSent(count)
    }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: promise)
    return true
  }

  private func noteSent(_ count: Int) {
    unsent -= count
    sent(count)
    shutOutputWhenSent()
  }

  // MARK: Ending

  /// Ends this direction.
  func finishSending() {
    guard case .open = phase, !isOutputOver else { return }
    endOutput()
  }

  /// Ends this direction, discards the other, and waits for the peer.
  func close() {
    delivery.discard()
    guard case .open = phase else { return }
    // What is left to be read has to be, up to the peer's end.
    if delivery.isPaused { setReading(true) }
    phase = .closing(ByteStreamEnd(isLocal: isOutputOver ? isFirst : !isInputOver))
    silence?.cancel()
    startDeadline()
    if isOutputOver { shutOutputWhenSent() } else { endOutput() }
  }

  /// Ends at once. Unsent bytes are lost.
  func cancel() {
    delivery.discard()
    finish(
      ByteStreamEnd(
        problem: NetError(.cancelled, "the connection was cancelled by this side"), isLocal: true))
    disconnect()
  }

  private func endOutput() {
    isOutputOver = true
    isFirst = !isInputOver
    if isInputOver { startDeadline() }
    shutOutputWhenSent()
  }

  private func shutOutputWhenSent() {
    guard isOutputOver, unsent == 0, lost == 0, !isOutputShut, let context else { return }
    isOutputShut = true
    if isInputOver { closeBehindAlert(context) } else { context.close(mode: .output, promise: nil) }
  }

  /// Closes the channel behind TLS's close alert. The alert needs room in the system's buffer like all bytes: SwiftNIO's own close, which
  /// follows it at once, would lose it behind a slow reader.
  private func closeBehindAlert(_ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let stopped = context.eventLoop.makePromise(of: Void.self)
    stopped.futureResult.whenComplete { _ in
      let (handler, context) = bound.value
      let sent = context.eventLoop.makePromise(of: Void.self)
      sent.futureResult.whenComplete { _ in bound.value.0.disconnect() }
      context.writeAndFlush(handler.wrapOutboundOut(ByteBuffer()), promise: sent)
    }
    do {
      try context.pipeline.syncOperations.handler(type: NIOSSLHandler.self).stopTLS(promise: stopped)
    } catch {
      // There is no TLS, and a FIN needs no room.
      stopped.succeed()
    }
  }

  /// Limits the time for the end. Both directions are over or to end: the peer has to take what waits and, after `close`, to end its own.
  private func startDeadline() {
    guard deadline == nil, let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    deadline = LoopTimer(on: context.eventLoop, in: .milliseconds(Int64(limits.close))) {
      bound.value.timeOut()
    }
  }

  private func timeOut() {
    var end: ByteStreamEnd
    switch phase {
    case .open: end = ByteStreamEnd(isLocal: isFirst)
    case .closing(let known): end = known
    case .opening, .closed: return
    }
    if unsent > 0 {
      end.problem = NetError(
        .timeout, "\(peer) did not take the last \(unsent) bytes within \(limits.close) ms")
    }
    finish(end)
    disconnect()
  }

  private func finishClosing(_ end: ByteStreamEnd) {
    var end = end
    if lost + unsent > 0 {
      end.problem = NetError(
        .lost, "connection to \(peer) lost before the last \(lost + unsent) bytes were sent")
    }
    finish(end)
  }

  /// Closes TCP. Unsent bytes are lost. With TLS, the peer is given a moment to answer the close alert.
  private func disconnect() {
    guard let context else { return }
    // The answer has to be read.
    if delivery.isPaused { setReading(true) }
    do {
      // With it, NIOSSL ignores the answer and waits for the whole of its time.
      try context.channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: false)
    } catch {
      // The channel is closed.
    }
    context.close(promise: nil)
  }

  /// Hands the end over, once.
  private func finish(_ end: ByteStreamEnd) {
    if case .closed = phase { return }
    // A stream that never opened has no other event.
    if !isOpen { delivery.discard() }
    phase = .closed
    deadline?.cancel()
    silence?.cancel()
    delivery.end(end)
  }
}
