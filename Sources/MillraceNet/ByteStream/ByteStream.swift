internal import NIOCore

/// A stream of bytes over TCP or TLS, of a client or of a server: what a protocol with a framing of its own stands on.
///
/// Events arrive on the thread of its loop (`NetLoop`). `closed` comes exactly once and last, even when the stream never opened.
/// Sending and closing are safe from any thread; both allocate.
///
/// A stream has two directions. `finish` ends this side's, and the event `finished` reports that the peer has ended its own: a FIN, with
/// TLS after a close alert. When both have ended, the stream is closed. With TLS a FIN without a close alert is an error: somebody on the
/// way may have cut the stream short.
///
/// Not supported: ALPN, client certificates. A server's certificate is always verified unless it is on this machine.
@safe
public final class ByteStream: Sendable {
  /// What an opening stream waits for; the next step takes its place.
  private enum Step { case connection, tunnel, handshake }

  /// State of the event loop.
  private struct Core {
    var handler: ByteStreamHandler?
    var channel: (any Channel)?
    var step = Step.connection
    var isPaused = false
    var isOver = false
    var opening: LoopTimer?
  }

  /// The loop of its events, and of everything that belongs to its session.
  public let loop: NetLoop
  private let core: NIOLoopBoundBox<Core>
  private let events: @Sendable (ByteStreamEvent) -> Void
  private let limits: ByteStreamLimits
  private let waiting: SendBacklog

  init(
    _ limits: ByteStreamLimits, on loop: NetLoop, events: @escaping @Sendable (ByteStreamEvent) -> Void
  ) {
    self.loop = loop
    self.limits = limits
    self.events = events
    waiting = SendBacklog(limit: limits.backlog)
    core = .makeBoxSendingValue(Core(), eventLoop: loop.loop)
  }

  /// Opens a byte stream. Returns at once; `opened` or `closed` follows. Call `NetLoop.begin` first where the process may be out of
  /// descriptors.
  public static func open(
    _ request: ByteStreamRequest, events: @escaping @Sendable (ByteStreamEvent) -> Void
  ) -> ByteStream {
    let loop = request.loop ?? .shared
    let stream = ByteStream(request.limits, on: loop, events: events)
    loop.run { stream.begin(request) }
    return stream
  }

  // MARK: Any thread

  /// Sends bytes. Returns false, and sends nothing, when the backlog would exceed its limit; `drained` follows later, unless the stream
  /// ends first. More bytes than the whole limit are accepted when nothing else waits. Bytes sent before `opened`, or after `finish`,
  /// `close` or the end, are discarded.
  public func send(_ bytes: [UInt8]) -> Bool {
    switch waiting.add(bytes.count) {
    case .accepted:
      onLoop { $0.write(bytes) }
      return true
    case .refused: return false
    case .refusedButDrained:
      onLoop { $0.noteSent(0) }
      return false
    }
  }

  /// Bytes waiting to be sent.
  public var backlog: Int { waiting.bytes }

  /// Ends this side's direction behind the bytes that wait to be sent; the peer reads them, and then the end. Its own direction stays
  /// open. Once it has ended that too, the peer has the limits' time for `close` to take the bytes. A stream that is not open yet is
  /// cancelled.
  public func finish() { whenOpen { $0.finishSending() } }

  /// Ends this side's direction behind the bytes that wait to be sent, and waits for the peer to end its own, at most as long as the
  /// limits allow. What still arrives, and what a pause holds, is discarded. A stream that is not open yet is cancelled.
  public func close() { whenOpen { $0.close() } }

  /// Closes the connection at once, and loses the bytes that wait to be sent. `closed` follows without waiting for the peer or for
  /// `resume`.
  public func cancel() { whenOpen { $0.cancel() } }

  /// Stops reading. Unless called from within an event, bytes that were already read may still arrive. The peer has to wait when the
  /// buffers of both systems are full. The end, also one by an error, is reported behind the bytes before it: after `resume`, `close`
  /// or `cancel`, one of which has to follow.
  public func pause() { onLoop { $0.setPaused(true) } }

  /// Continues reading.
  public func resume() { onLoop { $0.setPaused(false) } }

  private func onLoop(_ body: @escaping @Sendable (ByteStream) -> Void) {
    if loop.isCurrent {
      body(self)
    } else {
      loop.run { body(self) }
    }
  }

  private func whenOpen(_ body: @escaping @Sendable (ByteStreamHandler) -> Void) {
    onLoop { stream in
      if let handler = stream.openHandler {
        body(handler)
      } else {
        stream.end(Self.cancelledEarly)
      }
    }
  }

  // MARK: Loop

  /// `TCP_NOTSENT_LOWAT`, for which Glibc has no name in Swift. Source: linux/tcp.h.
  private static let leastUnsent = NIOBSDSocket.Option(rawValue: 25)

  private static let cancelledEarly = NetError(.cancelled, "cancelled before it was open")

  /// The handler, once bytes may be sent.
  private var openHandler: ByteStreamHandler? {
    guard let handler = core.value.handler, handler.isOpen else { return nil }
    return handler
  }

  private func setPaused(_ isPaused: Bool) {
    core.value.isPaused = isPaused
    core.value.handler?.setPaused(isPaused)
  }

  private func write(_ bytes: [UInt8]) {
    if openHandler?.send(bytes) != true { noteSent(bytes.count) }
  }

  /// Bytes were sent, discarded or lost.
  private func noteSent(_ count: Int) {
    // A receiver that sends until the backlog is full would never return where nothing can be sent: all of it is discarded.
    if waiting.sent(count), openHandler?.canSend ?? true { emit(.drained) }
  }

  /// Passes an event on; none after the end.
  private func emit(_ event: ByteStreamEvent) {
    guard !core.value.isOver else { return }
    switch event {
    case .opened: core.value.opening?.cancel()
    case .closed:
      core.value.isOver = true
      core.value.handler = nil
      core.value.channel = nil
      core.value.opening?.cancel()
    case .bytes, .drained, .finished: break
    }
    events(event)
  }

  private func begin(_ request: ByteStreamRequest) {
    guard !core.value.isOver else { return }
    if let problem = request.problem {
      end(problem)
      return
    }
    let address = request.address
    let time = TimeAmount.milliseconds(Int64(limits.open))
    core.value.opening = LoopTimer(on: loop.loop, in: time) { [self] in timeOut(address) }
    let attempt = ConnectionAttempt(
      address: address, proxy: request.proxy, trust: request.trust, timeout: time)
    let bound = NIOLoopBound(self, eventLoop: loop.loop)
    attempt.open(on: loop.loop) { bound.value.keep($0) }.flatMapThrowing { [self] channel in
      // No byte is read in between.
      try attach(to: channel, peer: address.authority, host: address.host)
    }.whenComplete { [self] result in
      switch result {
      case .success:
        core.value.step = .handshake
        // With TLS the handler waits for the end of the handshake.
        if !address.isSecure { core.value.handler?.begin() }
      case .failure(let error): end(NetErrorMessages.error(error, address.authority, address.host))
      }
    }
  }

  /// TCP is connected: the channel is closed on a timeout or when the stream was cancelled meanwhile.
  private func keep(_ channel: any Channel) {
    core.value.step = .tunnel
    if core.value.isOver { channel.close(promise: nil) } else { core.value.channel = channel }
  }

  private func timeOut(_ address: WebAddress) {
    let (peer, time) = (address.authority, limits.open)
    switch core.value.step {
    case .connection:
      end(
        NetError(
          .timeout, "connecting to \(peer) timed out after \(time) ms; check the address and the network"))
    case .tunnel: end(NetError(.timeout, "the proxy did not open a tunnel to \(peer) within \(time) ms"))
    case .handshake:
      end(NetError(.timeout, "\(peer) did not complete the TLS handshake within \(time) ms"))
    }
  }

  /// It did not open, or was cancelled.
  private func end(_ problem: NetError) {
    let channel = core.value.channel
    emit(.closed(ByteStreamEnd(problem: problem, isLocal: problem.kind == .cancelled)))
    channel?.close(promise: nil)
  }

  /// Becomes the last handler of a channel's pipeline.
  private func attach(to channel: any Channel, peer: String, host: String) throws {
    guard !core.value.isOver else { throw Self.cancelledEarly }
    // Without it, the peer's end would close the channel and lose what waits to be sent.
    try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
    if let unsent = limits.unsent {
      let option = ChannelOptions.Types.SocketOption(level: .tcp, name: Self.leastUnsent)
      try channel.syncOptions?.setOption(option, value: unsent)
    }
    let bound = NIOLoopBound(self, eventLoop: loop.loop)
    let handler = ByteStreamHandler(
      limits, peer: peer, host: host, sent: { bound.value.noteSent($0) }, sink: { bound.value.emit($0) })
    core.value.handler = handler
    core.value.channel = channel
    try channel.pipeline.syncOperations.addHandler(handler)
    if core.value.isPaused { handler.setPaused(true) }
  }

  /// The server's end of a channel that is connected and, with TLS, secure.
  /// - Throws: when the channel is closed already; the receiver has its `closed` then.
  static func accept(
    _ channel: any Channel, _ limits: ByteStreamLimits, peer: String,
    _ receive: (ByteStream) -> @Sendable (ByteStreamEvent) -> Void
  ) throws {
    let box = NIOLoopBoundBox<(@Sendable (ByteStreamEvent) -> Void)?>(nil, eventLoop: channel.eventLoop)
    let stream = ByteStream(limits, on: .owning(channel.eventLoop)) { event in
      box.value?(event)
      // The receiver probably holds the stream, which holds the receiver.
      if case .closed = event { box.value = nil }
    }
    let events = receive(stream)
    guard !stream.core.value.isOver else {
      // Cancelled before it had a receiver.
      events(.closed(ByteStreamEnd(problem: cancelledEarly, isLocal: true)))
      channel.close(promise: nil)
      return
    }
    box.value = events
    do { try stream.attach(to: channel, peer: peer, host: peer) } catch {
      // The client has gone meanwhile: the receiver is notified, and released.
      stream.end(NetError(.lost, "\(peer) closed the connection before it was open"))
      throw error
    }
    stream.core.value.handler?.begin()
  }
}
