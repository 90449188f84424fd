package import MillraceCore
package import MillraceNet
internal import MillraceRTCWire
package import MillraceRoomWire

/// Where and how `RoomClient` and `RoomPeerClient` take part in a room.
package struct RoomClientSettings: Sendable {
  /// The hub: `wss:`, or `ws:` on this machine or with `plain`. Without a path `RoomWire.path` is asked.
  package var url: WebAddress
  /// Who logs in: 1 to 64 letters, digits, `-` and `_`.
  package var user: String
  /// The name that others see; nil: that of the user.
  package var name: String?
  /// What lets the user in; nil or empty: none. A secret.
  package var token: String?
  /// The room: a name as that of the user.
  package var room: String
  /// What this side wants to be there; nil: the highest role it may have.
  package var role: RoomRole?
  /// What is published as soon as the room is joined; `data` may be among it. A viewer publishes nothing.
  package var publish: Set<RoomTrack> = [.audio]
  /// What is received of all others, and of those who will join. Not for `RoomPeerClient`.
  package var subscribe: Set<RoomTrack> = [.audio]
  /// What an attempt before this one had come to (`RoomClient.wishes`), in place of `role`, `publish` and `subscribe`; nil: none did.
  package var wishes: RoomWishes?
  /// What sessions can carry: what is not in it is neither published nor received. One that sends a track that is not in `publish` is
  /// offered with it all the same, for a command that publishes it later.
  package var media: SignalMedia
  /// The label of messages that commands send without one.
  package var dataLabel = "data"
  /// Participants that are heard, and seen, at a time in a room that forwards. Not for `RoomPeerClient`.
  package var slots = 8
  /// Milliseconds in which every request must be answered, and in which the connection must open. An offer to the hub has `describing`
  /// more.
  package var timeout = 5_000
  /// A file of certificates (PEM) to trust in place of the system's.
  package var roots: String?
  package var proxy = NetProxy.environment
  /// False: any certificate is accepted; only for this machine.
  package var verify = true
  /// Allows `ws:` beyond this machine.
  package var plain = false
  /// The hub is one of this program, at an address of this machine: nobody is in between, whatever its certificate is.
  package var isOwnHub = false

  /// As many media of a kind as a session may have.
  package static let mostSlots = 16
  /// Milliseconds that a hub may take to find its candidates before it answers an offer: the longest search
  /// (`RTCSessionSettings.gathering`), and time for the rest.
  package static let describing = 7_000

  package init(url: WebAddress, user: String, room: String, media: SignalMedia) {
    self.url = url
    self.user = user
    self.room = room
    self.media = media
  }

  var trust: NetTrust {
    if isOwnHub { return .anyCertificate }
    if let roots { return .file(roots) }
    return verify ? .system : .anyCertificate
  }

  /// The address with its path.
  var address: WebAddress {
    guard url.target == "/" else { return url }
    do throws(NetError) {
      return try WebAddress("\(url.scheme.rawValue)://\(url.authority)\(RoomWire.path)")
    } catch {
      return url
    }
  }

  /// Nil where `problem` says why.
  var login: RoomLogin? {
    RoomName(user).map { RoomLogin($0, name: name, token: token.flatMap { $0.isEmpty ? nil : $0 }) }
  }

  /// Nil where `problem` says why.
  var join: RoomJoin? { RoomName(room).map { RoomJoin($0, role: start.role) } }

  /// What this side wants at first.
  var start: RoomWishes {
    wishes ?? RoomWishes(role: role, publish: publish.filter { sends($0) }, subscribe: subscribe)
  }

  /// Whether a track can be published.
  func sends(_ track: RoomTrack) -> Bool {
    switch track {
    case .audio: media.audio.sends
    case .video: media.video.sends
    case .data: true
    }
  }

  // MARK: Checks

  /// What is wrong with the settings, and the cure; nil: nothing. For the check of a graph; `begin` looks again.
  package var problem: NodeProblem? {
    guard url.scheme == .ws || url.scheme == .wss else {
      return NodeProblem("the address of a room must begin with wss: or ws:", parameter: "url")
    }
    guard url.isSecure || url.isLoopback || plain || isOwnHub else {
      return NodeProblem(
        """
        "\(url.authority)" would get the token in plain text, and who changes descriptions on the way can listen
        """, parameter: "url", cure: "use wss:, or set \"plain\" to true")
    }
    if roots == nil, !verify, !url.isLoopback, !isOwnHub {
      return NodeProblem(
        "verification may be disabled only for this machine", parameter: "verify",
        cure: "remove it; \"roots\" sets a certificate authority of your own")
    }
    guard timeout > 0 else { return NodeProblem("a timeout must be at least 1 ms", parameter: "signal") }
    guard (0...Self.mostSlots).contains(slots) else {
      return NodeProblem("\"slots\" must be 0 to \(Self.mostSlots)", parameter: "slots")
    }
    return nameProblem
  }

  private var nameProblem: NodeProblem? {
    let form = "must be 1 to \(RoomLimits.nameCharacters) of A to Z, a to z, the digits, - and _"
    guard RoomName(user) != nil else { return NodeProblem("\"user\" \(form)", parameter: "user") }
    guard RoomName(room) != nil else { return NodeProblem("\"room\" \(form)", parameter: "room") }
    if let name, name.unicodeScalars.count > RoomLimits.displayCharacters {
      let most = RoomLimits.displayCharacters
      return NodeProblem("\"name\" must have at most \(most) characters", parameter: "name")
    }
    if let token, token.unicodeScalars.count > RoomLimits.tokenCharacters {
      let most = RoomLimits.tokenCharacters
      return NodeProblem("the token must have at most \(most) characters", parameter: "token")
    }
    return nil
  }
}

extension RoomClientSettings: CustomStringConvertible {
  /// The room and the host; the rest may be secret.
  package var description: String { "room \(room) at \(url.scheme)://\(url.authority)" }
}
