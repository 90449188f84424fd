internal import NIOCore
internal import NIOWebSocket

/// How a WebSocket ends: good-byes of either side, what the standard forbids, and peers that do not answer.
///
/// Whoever breaks the rules is told its code first and hung up on after: hung up on at once, bytes that were not read yet would
/// make the system throw the code away on the other side. The time for all of that is `limits.close`.
extension WebSocketWire {
  /// Says good-bye.
  func close(_ code: Int, _ reason: String) {
    guard case .open = phase else { return }
    sendClose(code, reason)
    expect(WebSocketEnd(code: code, reason: reason, isOurs: true))
    // Its good-bye must be seen.
    if isPaused { setReading(true) }
  }

  /// Ends without a good-bye.
  func cancel() {
    over(
      WebSocketEnd(
        code: 1006, problem: NetProblem(.cancelled, "it was hung up on from this side"), isOurs: true))
    hangUp()
  }

  /// The other side has said good-bye.
  func peerCloses(_ code: Int, _ reason: String) {
    switch phase {
    case .open:
      sendClose(code == 1005 ? nil : code, "")
      let end = WebSocketEnd(code: code, reason: reason)
      expect(end)
      // A client lets the server hang up first, RFC 6455 section 7.1.1.
      if isServer {
        over(end)
        linger()
      } else if isPaused {
        setReading(true)
      }
    case .closing(let end):
      over(end)
      hangUp()
    case .over: hangUp()
    }
  }

  /// The other side has broken the rules.
  func violate(_ code: Int, _ problem: NetProblem) {
    guard case .open = phase else {
      hangUp()
      return
    }
    sendClose(code, "")
    over(WebSocketEnd(code: code, problem: problem, isOurs: true))
    linger()
  }

  /// What came is no frame. A length is enough to know that a message is too large: it is not waited for.
  func fail(_ error: NIOWebSocketError) {
    switch error {
    case .invalidFrameLength:
      violate(1009, NetProblem(.tooLarge, "a message is larger than \(limits.message) bytes"))
    default: violate(1002, NetProblem(.garbled, "a control frame is cut in pieces or too long"))
    }
  }

  private func sendClose(_ code: Int?, _ reason: String) {
    var bytes: [UInt8] = []
    if let code {
      bytes = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
      // 125 bytes in all, and no character cut in two.
      for character in reason {
        guard bytes.count + String(character).utf8.count <= 125 else { break }
        bytes += String(character).utf8
      }
    }
    send(.connectionClose, bytes, promise: nil)
  }

  /// A close frame was sent: what it will be when the other side has answered, or the time for it is over.
  private func expect(_ end: WebSocketEnd) {
    phase = .closing(end)
    pinging?.cancel()
    limitTime()
  }

  /// Sends what waits, then says that nothing follows. What comes meanwhile is read and thrown away, until the other side has
  /// hung up or the time is over.
  private func linger() {
    limitTime()
    setReading(true)
    context?.close(mode: .output, promise: nil)
  }

  private func limitTime() {
    guard deadline == nil, let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.close))) {
      bound.value.giveUp()
    }
  }

  private func giveUp() {
    if case .closing(let end) = phase { over(end) }
    hangUp()
  }

  /// Ends the TCP connection. What has not gone out is lost.
  func hangUp() { context?.close(promise: nil) }

  /// Tells the end, once, behind everything that came before it.
  func over(_ end: WebSocketEnd) {
    guard hasBegun else {
      // It was open, if only for a moment.
      if earlyEnd == nil { earlyEnd = end }
      return
    }
    var end = end
    switch phase {
    case .over: return
    case .closing(let known): end = known
    case .open: break
    }
    phase = .over
    pinging?.cancel()
    let rest = waiting
    waiting = []
    for event in rest { sink(event) }
    sink(.closed(end))
  }
}
