internal import MillraceDialog

/// Which session of a connection a packet of the cloud is for, and which numbers its channels have. Pure.
///
/// A packet that names a session (attribute 43) is for that one. Another is for the session that owns the number of its data channel; a
/// list of sessions (attribute 112) narrows that.
struct TuyaRoutes: Sendable {
  private struct Route: Sendable {
    var session: String
    var channels: TuyaChannels
  }

  private var pool = TuyaChannelPool()
  private var routes: [Int: Route] = [:]

  /// The channels of a new session.
  /// - Throws: the id is in use, or numbers are exhausted.
  mutating func create(
    _ line: Int, _ creation: TuyaCreation, _ terms: TuyaTerms
  ) throws(DialogError) -> TuyaChannels {
    guard !routes.values.contains(where: { $0.session == creation.id }) else {
      throw .tuya(
        .invalidParameter, "the session id is in use on this connection; give each node another \"session\"",
        reaction: .refuse)
    }
    guard let channels = pool.take(terms, isShared: creation.isShared) else {
      throw .tuya(
        .invalidParameter,
        "the agents of the connection have too many channels; give some of the nodes another \"connection\"",
        reaction: .refuse)
    }
    routes[line] = Route(session: creation.id, channels: channels)
    return channels
  }

  /// The session is closed.
  mutating func close(_ line: Int) {
    guard let route = routes.removeValue(forKey: line) else { return }
    pool.give(back: route.channels)
  }

  /// The lines that a packet is for, in order.
  func lines(session: String?, listed: [String]?, dataID: UInt16?) -> [Int] {
    let all = routes.sorted { $0.key < $1.key }
    if let session, !session.isEmpty {
      return all.filter { $0.value.session == session }.map(\.key)
    }
    guard let dataID else { return [] }
    let owners = all.filter { $0.value.channels.kind(ofReceived: dataID) != nil }
    guard let listed else { return owners.map(\.key) }
    return owners.filter { listed.contains($0.value.session) }.map(\.key)
  }

  func lines(for packet: TuyaPacket) -> [Int] {
    var dataID: UInt16?
    if case .media(let head, _) = packet.content { dataID = head.dataID }
    return lines(
      session: packet.attributes.text(.sessionID), listed: TuyaForms.sessions(packet), dataID: dataID)
  }
}
