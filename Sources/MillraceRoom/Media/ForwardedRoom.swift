internal import MillraceCore
internal import MillraceRTC
internal import MillraceRoomWire
internal import Synchronization

/// A room whose media are forwarded. On the loop's thread.
///
/// Packets pass within the reports of sessions, by lists that are made when a slot changes. Everything else happens in `run`.
final class ForwardedRoom: MediaRoom, RTCLoopMember {
  /// How often levels are reported, and looked at for who needs a slot. As often as members get to know who speaks.
  private static let interval: Nanoseconds = .milliseconds(200)
  /// Between two times that all slots are settled, which takes time in proportion to members times publishers: what members change within
  /// it, however often, costs once.
  private static let settling: Nanoseconds = .milliseconds(100)

  private let name: RoomName
  private let context: ForwardingContext
  private var entry: RTCLoop.Entry?
  private var members: [RoomName: ForwardedMember] = [:]
  /// Counts publications.
  private var orders: UInt64 = 0
  private var hasChanged = false
  private var settledAt: Nanoseconds?
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
    noteChange()
  }

  func take(_ action: RoomAction) {
    switch action {
    case .offer(let peer, let sdp, let request): members[peer]?.take(sdp, request: request)
    case .withdrawn(let peer, let request): members[peer]?.withdraw(request: request)
    case .candidate(let peer, let candidate): members[peer]?.add(candidate)
    // Messages do not go over sessions.
    case .publishing(let peer, let publication) where publication.track != .data:
      orders += 1
      members[peer]?.source.publish(publication, order: orders)
      noteChange()
    case .subscription(let peer, let subscription) where subscription.track != .data:
      members[peer]?.subscribe(subscription)
      noteChange()
    case .role(let peer, let role):
      members[peer]?.source.setRole(role)
      noteChange()
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
    if hasChanged, settlesAt <= now { settle(at: now) }
    if let time = lookAt, time <= now { look(at: now) }
    var next = lookAt
    if hasChanged { next = min(next ?? .max, settlesAt) }
    for member in members.values {
      if let due = member.requestKeyFrame(at: now) { next = min(next ?? due, due) }
    }
    return next
  }

  /// The earliest time to settle.
  private var settlesAt: Nanoseconds { settledAt.map { $0 + Self.settling } ?? 0 }

  /// Looks who speaks, who needs a slot, and what fits.
  private func look(at now: Nanoseconds) {
    let levels = members.values.compactMap { $0.source.takeLevel() }.sorted { $0.peer < $1.peer }
    if !levels.isEmpty || !isSilent { context.report?(.levels(levels, room: name)) }
    isSilent = levels.isEmpty
    passTurns(at: now)
    for member in members.values { member.fitVideos(at: now) }
    lookAt = hasMedia || !isSilent ? now + Self.interval : nil
    hasMedia = false
  }

  /// Gives slots to who is wanted, and makes the lists of who sends to which.
  private func settle(at now: Nanoseconds) {
    (hasChanged, settledAt) = (false, now)
    context.counters.settlements.add(1, ordering: .relaxed)
    for track in [RoomTrack.audio, .video] {
      let publishers = publishers(track)
      for member in members.values { _ = member.assign(track, publishers, at: now) }
    }
    connectTargets()
  }

  /// Gives slots to those who speak without one, where members want more peers than they have slots. Without such a speaker nothing would
  /// change.
  private func passTurns(at now: Nanoseconds) {
    var isPassed = false
    for track in [RoomTrack.audio, .video] {
      let publishers = publishers(track)
      let speakers = publishers.filter { $0.source.speech.hasSpoken(for: SlotTable.turn, at: now) }
      guard !speakers.isEmpty else { continue }
      for member in members.values where member.lacks(track, speakers) {
        if member.assign(track, publishers, at: now) { isPassed = true }
      }
    }
    if isPassed { connectTargets() }
  }

  private func connectTargets() {
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

  func end() {
    for member in members.values { member.end() }
    members = [:]
    if let entry { context.loop.remove(entry) }
    entry = nil
  }
}
