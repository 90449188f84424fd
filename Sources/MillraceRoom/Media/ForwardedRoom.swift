internal import MillraceCore
internal import MillraceRTC
internal import MillraceRoomWire

/// A room whose media are forwarded. On the loop's thread.
///
/// Packets pass within the reports of sessions, by lists that are made when a slot changes. Everything else happens in `run`.
final class ForwardedRoom: RTCLoopMember {
  /// How often levels are reported, and looked at for who needs a slot. As often as members are told who speaks.
  private static let interval: Nanoseconds = .milliseconds(200)

  private let name: RoomName
  private let context: ForwardingContext
  private var entry: RTCLoop.Entry?
  private var members: [RoomName: ForwardedMember] = [:]
  /// Counts publications.
  private var orders: UInt64 = 0
  private var hasChanged = false
  /// The next look at levels and bit rates; nil: nothing comes.
  private var lookAt: Nanoseconds?
  private var hasMedia = false
  private var isSilent = true

  init(_ name: RoomName, _ context: ForwardingContext) {
    self.name = name
    self.context = context
    entry = context.loop.add(self)
  }

  func member(_ peer: RoomName) -> ForwardedMember? { members[peer] }

  // MARK: What happens

  func join(_ member: RoomMember) {
    guard members[member.peer] == nil else { return }
    members[member.peer] = ForwardedMember(member.peer, role: member.role, in: self, context)
  }

  func leave(_ peer: RoomName) {
    guard let member = members[peer] else { return }
    member.end()
    members[peer] = nil
    for other in members.values { other.forget(peer) }
    settle(at: context.clock.now)
  }

  /// Takes an action of one of its members.
  func take(_ action: RoomAction) {
    switch action {
    case .offer(let peer, let sdp, let request): members[peer]?.take(sdp, request: request)
    case .candidate(let peer, let candidate): members[peer]?.add(candidate)
    case .publishing(let peer, let publication):
      orders += 1
      members[peer]?.source.publish(publication, order: orders)
      settle(at: context.clock.now)
    case .subscription(let peer, let subscription):
      members[peer]?.subscribe(subscription)
      settle(at: context.clock.now)
    case .role(let peer, let role):
      members[peer]?.source.setRole(role)
      settle(at: context.clock.now)
    default: break
    }
  }

  // MARK: What members report

  /// Slots are to be looked at.
  func noteChange() {
    hasChanged = true
    wake()
  }

  /// Something has come.
  func noteMedia(at now: Nanoseconds) {
    hasMedia = true
    guard lookAt == nil else { return }
    lookAt = now + Self.interval
    wake()
  }

  func wake() { entry?.wake() }

  // MARK: Time

  func run(at now: Nanoseconds) -> Nanoseconds? {
    for member in members.values where member.isOver { member.dropSession() }
    if hasChanged { settle(at: now) }
    if let time = lookAt, time <= now { look(at: now) }
    var next = lookAt
    for member in members.values {
      if let due = member.requestKeyFrame(at: now) { next = min(next ?? due, due) }
    }
    return next
  }

  /// Looks who speaks, who needs a slot, and what fits.
  private func look(at now: Nanoseconds) {
    let levels = members.values.compactMap { $0.source.takeLevel() }.sorted { $0.peer < $1.peer }
    if !levels.isEmpty || !isSilent { context.report?(.levels(levels, room: name)) }
    isSilent = levels.isEmpty
    if members.values.contains(where: { $0.isShort }) { settle(at: now) }
    for member in members.values { member.fitVideos(at: now) }
    lookAt = hasMedia || !isSilent ? now + Self.interval : nil
    hasMedia = false
  }

  /// Gives slots to who is wanted, and makes the lists of who sends to which.
  private func settle(at now: Nanoseconds) {
    hasChanged = false
    for track in [RoomTrack.audio, .video] {
      let publishers = publishers(track)
      for member in members.values { member.assign(track, publishers, at: now) }
    }
    for member in members.values { member.source.removeTargets() }
    for member in members.values { member.addTargets() }
  }

  /// Who publishes a track, in the order in which they began.
  private func publishers(_ track: RoomTrack) -> [ForwardedMember] {
    var list: [(order: UInt64, member: ForwardedMember)] = []
    for member in members.values {
      if let order = member.source.order(of: track) { list.append((order, member)) }
    }
    return list.sorted { $0.order < $1.order }.map(\.member)
  }

  /// Ends all sessions, and leaves the loop. Not within their reports.
  func end() {
    for member in members.values { member.end() }
    members = [:]
    if let entry { context.loop.remove(entry) }
    entry = nil
  }
}
