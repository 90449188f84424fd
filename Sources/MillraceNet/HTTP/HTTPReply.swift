internal import NIOCore
internal import Synchronization

/// The right to answer one request of an `HTTPServer`. Any thread; the answer may be given long after the request came, as in a long poll.
///
/// Only the first answer counts. When the last reference goes and none was given, the client gets status 500: it would wait forever.
public final class HTTPReply: Sendable {
  private let loop: any EventLoop
  private let gate: LoopGate
  /// A reply that is kept does not keep the connection.
  private enum State {
    case open(HTTPServerExchange)
    case over(NetError?)
  }
  private let state: NIOLoopBoundBox<State>
  private let isGiven = Atomic<Bool>(false)

  init(_ exchange: HTTPServerExchange, on loop: any EventLoop, _ gate: LoopGate) {
    self.loop = loop
    self.gate = gate
    state = NIOLoopBoundBox(.open(exchange), eventLoop: loop)
  }

  deinit {
    guard !isGiven.load(ordering: .relaxed) else { return }
    let state = state
    gate.execute(on: loop) {
      guard case .open(let exchange) = state.value else { return }
      exchange.answer(.text("the server's code gave no answer\n", status: 500))
    }
  }

  /// Answers the request. After the client has gone, or after another answer, this does nothing.
  public func send(_ response: HTTPServer.Response) {
    guard !isGiven.exchange(true, ordering: .relaxed) else { return }
    onLoop { $0.answer(response) }
  }

  /// Closes the connection without an answer: for a double of a service that fails. After another answer this does nothing.
  public func drop() {
    guard !isGiven.exchange(true, ordering: .relaxed) else { return }
    onLoop { $0.drop() }
  }

  /// Stops reading a streamed body: the client has to wait. What was read already may still arrive, unless this is called from within an
  /// event.
  public func pause() { onLoop { $0.setPaused(true) } }

  /// Continues reading.
  public func resume() { onLoop { $0.setPaused(false) } }

  /// Calls `body` on the server's thread when the exchange is over: nil when the answer was sent, or why it was not, for example because
  /// the client has gone (`lost`), or read nothing for as long as the limits allow (`timeout`).
  public func whenOver(_ body: @escaping @Sendable (NetError?) -> Void) {
    let state = state
    gate.execute(on: loop) {
      switch state.value {
      case .open(let exchange): exchange.observers.append(body)
      case .over(let problem): body(problem)
      }
    }
  }

  /// The exchange is over. On the loop.
  func end(_ problem: NetError?) { state.value = .over(problem) }

  private func onLoop(_ body: @escaping @Sendable (HTTPServerExchange) -> Void) {
    let state = state
    let run: @Sendable () -> Void = {
      if case .open(let exchange) = state.value { body(exchange) }
    }
    if loop.inEventLoop { run() } else { gate.execute(on: loop, run) }
  }
}
