internal import MillraceNet
internal import MillraceRTCWire

/// The sessions of one WHIP or WHEP server, and who may open one. Source: RFC 9725 sections 4.2 to 4.4.
struct ResourceTable: Sendable {
  /// A request that waits for a description of this side.
  struct Pending: Sendable {
    /// Tells it from those before and after.
    let number: Int
    let reply: HTTPReply
    let response: ResourceResponse
    /// What the client has offered.
    let offer: SessionDescription
    let timer: NetTimer
  }

  /// A session.
  struct Resource: Sendable {
    let session: SignalSessionID
    /// The last part of its path.
    let id: String
    let media: SignalMedia
    /// The client's name in events.
    let peer: String
    /// Of its ICE session: another after each restart.
    var etag: String
    /// What the client has offered and this side has answered.
    var remote: SessionDescription
    /// It was answered once.
    var isOpen = false
    var pending: Pending?
    /// Candidates that have followed the offer.
    var candidates = 0
  }

  /// Whether there is room for another session.
  enum Room {
    case free, occupied, full
  }

  private let role: ResourceServerSettings.Role
  private let viewers: Int
  private var resources: [String: Resource] = [:]
  private var ids: [SignalSessionID: String] = [:]
  private var count = 0

  init(_ settings: ResourceServerSettings) {
    role = settings.role
    viewers = settings.viewers
  }

  var room: Room {
    switch role {
    case .ingest: resources.isEmpty ? .free : .occupied
    case .playback: resources.count < viewers ? .free : .full
    }
  }

  subscript(id: String) -> Resource? { resources[id] }

  subscript(session: SignalSessionID) -> Resource? { ids[session].flatMap { resources[$0] } }

  /// Adds a session whose offer is to be answered.
  mutating func add(_ id: String, _ media: SignalMedia, _ peer: String, _ pending: Pending) -> Resource {
    let session = SignalSessionID(count)
    count += 1
    let resource = Resource(
      session: session, id: id, media: media, peer: "\(peer)-\(session.number + 1)", etag: Self.newTag(),
      remote: pending.offer, pending: pending)
    resources[id] = resource
    ids[session] = id
    return resource
  }

  /// An ICE restart is to be answered.
  mutating func wait(_ id: String, for pending: Pending) { resources[id]?.pending = pending }

  /// The request of a session that waits, which waits no longer.
  /// - Parameter number: that of the request; nil: whichever it is.
  mutating func takePending(_ id: String, number: Int? = nil) -> Pending? {
    guard let pending = resources[id]?.pending, number == nil || pending.number == number else { return nil }
    resources[id]?.pending = nil
    return pending
  }

  /// This side has answered an offer. Returns the session as it is now.
  mutating func open(_ id: String, _ offer: SessionDescription) -> Resource? {
    guard var resource = resources[id] else { return nil }
    if resource.isOpen { resource.etag = Self.newTag() }
    (resource.isOpen, resource.remote, resource.candidates) = (true, offer, 0)
    resources[id] = resource
    return resource
  }

  /// How many of these candidates are passed on: a client cannot make a session collect them without end.
  mutating func admit(_ candidates: Int, to id: String) -> Int {
    let present = resources[id]?.candidates ?? 0
    let admitted = max(0, min(candidates, SDPLimits.candidates - present))
    resources[id]?.candidates = present + admitted
    return admitted
  }

  /// Removes a session, with the request that waits in it.
  mutating func remove(_ id: String) -> Resource? {
    guard let resource = resources.removeValue(forKey: id) else { return nil }
    ids[resource.session] = nil
    return resource
  }

  /// Removes all sessions.
  mutating func removeAll() -> [Resource] {
    defer { (resources, ids) = ([:], [:]) }
    return Array(resources.values)
  }

  /// An entity tag: two of them are never equal.
  private static func newTag() -> String { "\"\(SecretText.random(bytes: 8))\"" }
}

extension SessionDescription {
  /// The credentials of the bundle.
  var bundleCredentials: ICECredentials? {
    let tagged = bundle?.mids.first.flatMap { medium($0) } ?? media.first { !$0.isRejected }
    return tagged.flatMap { transport(of: $0).credentials } ?? transport.credentials
  }

  /// What an offer means for this side, which takes part in no more than `own`.
  func mediaInCommon(with own: SignalMedia) -> SignalMedia {
    func common(_ kind: MediaKind, _ own: MediaDirection) -> MediaDirection {
      let offered = media.filter { $0.kind == kind && !$0.isRejected }.map { direction(of: $0).reversed }
      return MediaDirection(sends: offered.contains { $0.sends }, receives: offered.contains { $0.receives })
        .intersection(own)
    }
    let hasData = media.contains { $0.kind == .application && !$0.isRejected }
    return SignalMedia(
      audio: common(.audio, own.audio), video: common(.video, own.video),
      hasData: hasData && own.hasData)
  }
}
