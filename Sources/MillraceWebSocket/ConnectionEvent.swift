internal import MillraceDialog

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
