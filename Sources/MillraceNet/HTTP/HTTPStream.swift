internal import NIOCore

/// Content that is sent as it comes: of a server's response, or of a client's request.
///
/// Sending and ending are safe from any thread. Events arrive on the thread of the connection; `closed` comes exactly once and last.
public final class HTTPStream: Sendable {
  /// An event of a stream.
  public enum Event: Sendable {
    /// The backlog was sent, after `send` had refused bytes.
    case drained
    /// Everything was sent after `end`, or the stream was lost, for example because the peer has gone.
    case closed(NetError?)
  }

  /// The end of the connection that writes. On the loop.
  protocol Output: AnyObject {
    /// Writes bytes, and succeeds when the system has taken them.
    func write(_ bytes: [UInt8], _ promise: EventLoopPromise<Void>)
    /// Nothing more comes.
    func end()
    /// What was sent is not the whole: the connection closes so that the peer notices.
    func abort()
  }

  /// State of the event loop.
  private struct Core {
    var output: (any Output)?
    var receive: (@Sendable (Event) -> Void)?
    /// The end, while there is no receiver yet.
    var early: Event?
    var isEnded = false
  }

  private let loop: any EventLoop
  private let gate: LoopGate
  private let core: NIOLoopBoundBox<Core>
  private let waiting: SendBacklog

  /// - Parameter limit: bytes that may wait to be sent.
  init(on loop: any EventLoop, _ gate: LoopGate, limit: Int) {
    self.loop = loop
    self.gate = gate
    waiting = SendBacklog(limit: limit)
    core = .makeBoxSendingValue(Core(), eventLoop: loop)
  }

  // MARK: Any thread

  /// Sends bytes. Returns false, and sends nothing, when the backlog would exceed its limit; `drained` follows later. More than the
  /// whole limit is accepted when nothing else waits. Bytes sent after the end are discarded.
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

  /// Ends the content. What waits is sent first; `closed` follows.
  public func end() { onLoop { $0.finish(abort: false) } }

  /// Breaks the content off: the peer sees that it is not complete, because the connection closes.
  public func cancel() { onLoop { $0.finish(abort: true) } }

  private func onLoop(_ body: @escaping @Sendable (HTTPStream) -> Void) {
    if loop.inEventLoop {
      body(self)
    } else {
      gate.execute(on: loop) { body(self) }
    }
  }

  // MARK: Loop

  /// Connects both sides. `begin` may send at once.
  func open(
    to output: any Output, _ begin: @Sendable (HTTPStream) -> @Sendable (Event) -> Void
  ) {
    core.value.output = output
    core.value.receive = begin(self)
    if let event = core.value.early.take() { emit(event) }
  }

  /// The exchange is over: everything was sent, or the connection is lost.
  func close(_ problem: NetError?) {
    guard core.value.output != nil else { return }
    core.value.output = nil
    emit(.closed(problem))
  }

  private func write(_ bytes: [UInt8]) {
    guard let output = core.value.output, !core.value.isEnded, !bytes.isEmpty else {
      noteSent(bytes.count)
      return
    }
    let promise = loop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] _ in noteSent(bytes.count) }
    output.write(bytes, promise)
  }

  private func finish(abort: Bool) {
    guard let output = core.value.output, !core.value.isEnded || abort else { return }
    core.value.isEnded = true
    if abort { output.abort() } else { output.end() }
  }

  private func noteSent(_ count: Int) {
    if waiting.sent(count), core.value.output != nil { emit(.drained) }
  }

  private func emit(_ event: Event) {
    guard let receive = core.value.receive else {
      // Called from within `begin`. Only the end has to be kept: nothing was refused yet that nobody would try again.
      core.value.early = event
      return
    }
    if case .closed = event { core.value.receive = nil }
    receive(event)
  }
}

extension HTTPStream {
  /// Sends an event of an event stream (HTML Living Standard, section 9.2). Returns false as `send(_:)` does.
  /// - Parameters:
  ///   - event: its type; nil: `message`. Everything from a line break on is left out.
  ///   - id: its id, which a browser that reconnects sends as `Last-Event-ID`. Everything from a line break on is left out.
  ///   - data: the content, of any number of lines.
  public func send(event: String? = nil, id: String? = nil, _ data: String) -> Bool {
    var text = ""
    for (field, value) in [("event", event), ("id", id)] {
      guard let value else { continue }
      text += "\(field): \(value.prefix { !$0.isNewline })\n"
    }
    for line in data.split(
      omittingEmptySubsequences: false, whereSeparator: { ["\n", "\r", "\r\n"].contains($0) })
    {
      text += "data: \(line)\n"
    }
    return send(Array((text + "\n").utf8))
  }
}
