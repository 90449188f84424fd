package import MillraceNet

/// The plugins of Janus that `JanusClient` speaks with.
package enum JanusPluginName: String, Sendable, Hashable, CaseIterable {
  /// Sends back what it gets.
  case echotest
  /// A room that mixes sound: everybody hears all others.
  case audiobridge
  /// A room that forwards sound and pictures: a session for what is sent, and one for each publisher that is received.
  case videoroom
  /// Plays a mountpoint.
  case streaming
  /// A room for texts over a data channel.
  case textroom

  /// The name as `attach` wants it.
  package var fullName: String { "janus.plugin.\(rawValue)" }
  /// True where a room is joined.
  package var hasRoom: Bool { self == .audiobridge || self == .videoroom || self == .textroom }
}

/// Whose sound and pictures are received in a video room.
package enum JanusSubscription: Sendable, Hashable {
  /// Everybody's.
  case all
  /// Nobody's, until a command says otherwise.
  case none
  /// Those of the participants with these ids, as `JanusID.description` has them.
  case list(Set<String>)
}

/// Where and how `JanusClient` takes part.
package struct JanusSettings: Sendable {
  /// `http:`, `https:` (long poll; without a path `/janus` is asked), `ws:` or `wss:`.
  package var url: WebAddress
  package var plugin: JanusPluginName
  /// The room of a plugin that has them.
  package var room: JanusID?
  /// The mountpoint of `streaming`.
  package var stream: JanusID?
  /// The pin of the room or the mountpoint; a secret.
  package var pin: String?
  /// The secret of the room's managers: needed for the command `kick`; a secret.
  package var secret: String?
  /// The name that others see.
  package var display: String?
  /// The name in a text room, unique there; nil: a random one.
  package var user: String?
  package var subscribe = JanusSubscription.all
  /// Joins an audio bridge muted.
  package var muted = false
  /// `api_secret` of the server; a secret.
  package var apiSecret: String?
  /// A token, where the server's `token_auth` is on; a secret.
  package var token: String?
  /// Milliseconds in which every request must be answered, and in which the connection must open.
  package var timeout = 5_000
  /// A file of certificates (PEM) to trust in place of the system's.
  package var roots: String?
  package var proxy = NetProxy.environment
  /// False: any certificate is accepted; only for this machine.
  package var verify = true
  /// Allows secrets without TLS beyond this machine.
  package var plain = false
  /// What the main session carries, and what is received in a video room.
  package var media: SignalMedia

  package init(url: WebAddress, plugin: JanusPluginName, media: SignalMedia) {
    self.url = url
    self.plugin = plugin
    self.media = media
  }

  /// True for the WebSocket, false for the long poll.
  var usesWebSocket: Bool { url.scheme == .ws || url.scheme == .wss }

  var trust: NetTrust {
    if let roots { return .file(roots) }
    return verify ? .system : .anyCertificate
  }

  /// What is wrong with the settings, and the cure; nil: nothing. For the check of a graph, and used again by `begin`.
  package var problem: String? {
    guard usesWebSocket || url.scheme == .http || url.scheme == .https else {
      return "the address of Janus must begin with http:, https:, ws: or wss:"
    }
    if plugin.hasRoom, room == nil {
      return "the plugin \(plugin.rawValue) needs a room; set \"room\""
    }
    if plugin == .streaming, stream == nil {
      return "the plugin streaming needs a mountpoint; set \"stream\" to its id"
    }
    guard timeout > 0 else { return "the timeout must be at least 1 ms" }
    return plainProblem
  }

  /// A secret in the body of a request is read as easily as one in a header.
  private var plainProblem: String? {
    guard !url.isSecure, !url.isLoopback, !plain else { return nil }
    let secrets = [("pin", pin), ("secret", secret), ("apiSecret", apiSecret), ("token", token)]
    guard let (name, _) = secrets.first(where: { $0.1 != nil }) else { return nil }
    let scheme = usesWebSocket ? "wss:" : "https:"
    return
      "\"\(name)\" would go to \(url.authority) in plain text; use \(scheme), or allow it with \"plain\""
  }
}

extension JanusSettings: CustomStringConvertible {
  /// Plugin and host; the rest may be secret.
  package var description: String { "\(plugin.rawValue) at \(url.scheme)://\(url.authority)" }
}
