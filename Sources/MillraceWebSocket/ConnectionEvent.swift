internal import MillraceDialog
internal import MillraceNet

/// A change of the connection, to be posted by the node.
struct ConnectionEvent: Sendable {
  /// Numbered like the events in the contract.
  enum Kind: Int, Sendable {
    case connected, disconnected, reconnecting, error
    case refused = 6
  }

  var kind: Kind
  /// `connected`: attempts. `disconnected`: close code. `reconnecting`: delay in milliseconds. `error`: code or status. `refused`: count.
  var number = 0
  var error: DialogError?
  var text = ""
  /// `refused`: the HTTP status of the latest refusal.
  var status = 0
  /// The end of the incoming queue when it happened: messages before it are delivered first.
  var position = 0
}

extension DialogError {
  /// Classifies the end of a WebSocket: RFC 6455 section 7.4, RFC 9110 section 15.
  init(_ end: WebSocketEnd) {
    let kind = end.problem?.kind
    var category = Category.network
    var reaction = Reaction.reconnect
    switch (kind, end.problem?.status) {
    case (.refused?, 401?), (.refused?, 403?), (.proxy?, 407?): (category, reaction) = (.auth, .refuse)
    case (.refused?, 429?): category = .quota
    case (.refused?, 408?): break
    case (.refused?, let status?) where (200..<500).contains(status):
      // Neither a page nor a redirect becomes a WebSocket when the request is repeated.
      (category, reaction) = (.request, .refuse)
    case (.tls?, _), (.address?, _): reaction = .refuse
    case (.cancelled?, _): reaction = .ended
    case (nil, _) where end.code == 1000: reaction = .ended
    case (nil, _) where end.code == 1008: (category, reaction) = (.auth, .refuse)
    default: break
    }
    self.init(
      vendor: "websocket", code: end.problem?.status ?? end.code, name: kind?.rawValue, category: category,
      reaction: reaction, text: end.description)
  }
}
