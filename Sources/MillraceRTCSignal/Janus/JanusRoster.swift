internal import MillraceDialog
internal import MillraceJSON

/// Who is in a room, and who speaks: turns what Janus says about participants into events, each change once.
struct JanusRoster: Sendable {
  /// Participants that are kept at most; further ones are left out.
  static let most = 4_096

  struct Member: Sendable, Hashable {
    var name: String?
    /// Nil: not known.
    var sendsAudio: Bool?
    var sendsVideo: Bool?
    var isMuted = false
  }

  /// This client's own id, once it has joined.
  var own: JanusID?
  private(set) var members: [JanusID: Member] = [:]
  /// In the order in which they began.
  private var speakers: [(id: JanusID, level: Double?)] = []

  /// The participant that a command names.
  func id(_ name: String) -> JanusID? { members.keys.first { $0.description == name } }

  /// A participant is there, with what is known.
  mutating func see(_ id: JanusID, name: String?, audio: Bool?, video: Bool?, isMuted: Bool?) -> [DialogEvent]
  {
    guard id != own else { return [] }
    var events: [DialogEvent] = []
    guard var member = members[id] else {
      guard members.count < Self.most else { return [] }
      let member = Member(name: name, sendsAudio: audio, sendsVideo: video, isMuted: isMuted ?? false)
      members[id] = member
      events.append(.peer(Self.peer(id, .joined, member)))
      return events
    }
    let before = member
    member.name = name ?? member.name
    member.sendsAudio = audio ?? member.sendsAudio
    member.sendsVideo = video ?? member.sendsVideo
    member.isMuted = isMuted ?? member.isMuted
    members[id] = member
    if (before.sendsAudio, before.sendsVideo) != (member.sendsAudio, member.sendsVideo) {
      events.append(.peer(Self.peer(id, .tracks, member)))
    }
    if before.isMuted != member.isMuted { events.append(.peer(Self.peer(id, .muted, member))) }
    return events
  }

  /// A participant has left.
  mutating func lose(_ id: JanusID, reason: String? = nil) -> [DialogEvent] {
    guard let member = members.removeValue(forKey: id) else { return [] }
    return speak(id, isOn: false, level: nil)
      + [.peer(DialogPeer(id.description, .left, name: member.name, reason: reason))]
  }

  /// A participant, or this client, starts or stops speaking. Janus reports the mean level of the last packets, 127 for silence and 0 for
  /// the loudest, as in RFC 6464 without the sign.
  mutating func speak(_ id: JanusID, isOn: Bool, level: Double?) -> [DialogEvent] {
    let wasOn = speakers.contains { $0.id == id }
    guard isOn || wasOn else { return [] }
    // Unknown speakers must not fill the list.
    guard !isOn || id == own || members[id] != nil else { return [] }
    speakers.removeAll { $0.id == id }
    var events: [DialogEvent] = []
    let decibels = level.map { 0 - min(127, max(0, $0)) }
    if isOn { speakers.append((id, decibels)) }
    if let decibels { events.append(.level(DialogLevel(peer: name(id), decibels: decibels))) }
    events.append(
      .speaking(speakers.map { DialogLevel(peer: name($0.id), decibels: $0.level) }))
    return events
  }

  /// Nil: this client.
  private func name(_ id: JanusID) -> String? { id == own ? nil : id.description }

  /// Sends sound: publishes it, and is not muted.
  private static func peer(_ id: JanusID, _ change: DialogPeer.Change, _ member: Member) -> DialogPeer {
    let audio = member.isMuted ? false : member.sendsAudio
    return DialogPeer(
      id.description, change, name: member.name, sendsAudio: audio, sendsVideo: member.sendsVideo)
  }
}
