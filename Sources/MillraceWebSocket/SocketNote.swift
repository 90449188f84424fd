internal import MillraceDialog
internal import MillraceNet

/// Something that happened to the connection, on its way to the node.
struct SocketNote: Sendable {
  /// Numbered as the events of the contract.
  enum Event: Int, Sendable {
    case connected, disconnected, reconnecting, error
    case refused = 6
  }

  var event: Event
  /// `connected`: attempts it took. `disconnected`: close code. `reconnecting`: milliseconds until then. `error`: code or status.
  /// `refused`: how many.
  var number = 0
  var error: DialogError?
  var text = ""
  /// `refused`: the status of HTTP the latest was sent.
  var status = 0
  /// Where the messages that came before it end in the queue to the node.
  var place = 0
}

extension DialogError {
  /// What the end of a WebSocket means. RFC 6455 section 7.4, RFC 9110 section 15.
  init(_ end: WebSocketEnd) {
    let kind = end.problem?.kind
    var category = Category.network
    var reaction = Reaction.reconnect
    switch (kind, end.problem?.status) {
    case (.refused?, 401?), (.refused?, 403?), (.proxy?, 407?): (category, reaction) = (.auth, .refuse)
    case (.refused?, 429?): category = .quota
    case (.refused?, 408?): break
    case (.refused?, let status?) where (200..<500).contains(status):
      // Neither a page nor a redirection becomes a WebSocket by asking again.
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
