internal import MillraceDialog
internal import MillraceNet

/// What a link to Janus reports, on its loop. Nothing follows `failed`.
enum JanusLinkEvent: Sendable {
  /// Requests can be sent.
  case opened
  /// A message, or an array of messages.
  case bytes([UInt8])
  /// The link is gone.
  case failed(DialogError)
}

/// How requests go to Janus and messages come back: long polls of HTTP, or a WebSocket. All calls on its loop.
protocol JanusLink: AnyObject, Sendable {
  /// Begins; `opened` or `failed` follows, never within the call.
  func open(_ receive: @escaping @Sendable (JanusLinkEvent) -> Void)
  /// Sends a request. Requests arrive in their order.
  func send(_ request: JanusRequest)
  /// Events of this session are wanted from now on.
  func listen(to session: Int)
  /// Ends it; nothing is reported any more.
  func close()
}

extension JanusSettings {
  /// The link for the scheme of the address.
  func makeLink(on loop: NetLoop) -> any JanusLink {
    if usesWebSocket { return JanusSocket(self, on: loop) }
    return JanusLongPoll(self, on: loop)
  }
}
