internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceRoomWire
internal import Synchronization

/// A room whose sound is mixed. On the loop's thread.
///
/// Packets go to the mixer within the reports of sessions; the mix is made and sent in `run`, every 20 ms while anybody sends.
final class MixedRoom: MediaRoom, RTCLoopMember {
  /// How often levels are reported. As often as members get to know who speaks.
  private static let interval: Nanoseconds = .milliseconds(200)

  private let name: RoomName
  private let context: MixingContext
  private let mixer: RoomMixer
  private var entry: RTCLoop.Entry?
  private var members: [RoomName: MixedMember] = [:]
  private var countedSeats = 0
  private var hasChanged = false
  private var levelsAt: Nanoseconds = 0
  private var isSilent = true

  init(_ name: RoomName, _ context: MixingContext) {
    self.name = name
    self.context = context
    mixer = RoomMixer(context.settings)
    entry = context.loop.add(self)
  }

  // MARK: What happens

  func join(_ member: RoomMember) {
    guard members[member.peer] == nil else { return }
    members[member.peer] = MixedMember(
      member.peer, role: member.role, in: self, at: mixer.addSeat(), context)
    noteSeats()
  }

  func leave(_ peer: RoomName) {
    guard let member = members.removeValue(forKey: peer) else { return }
    remove(member)
    noteSeats()
  }

  private func remove(_ member: MixedMember) {
    member.end()
    mixer.remove(member.seat)
  }

  /// Counts the seats of the mixer, not the members that should have them.
  private func noteSeats() {
    let count = mixer.seatCount
    context.counters.seats.add(count - countedSeats, ordering: .relaxed)
    countedSeats = count
  }

  // What a member has subscribed to makes no difference: a mix has all others.
  func take(_ action: RoomAction) {
    switch action {
    case .offer(let peer, let sdp, let request): members[peer]?.take(sdp, request: request)
    case .withdrawn(let peer, let request): members[peer]?.withdraw(request: request)
    case .candidate(let peer, let candidate): members[peer]?.add(candidate)
    case .publishing(let peer, let publication): members[peer]?.publish(publication)
    case .role(let peer, let role): members[peer]?.setRole(role)
    default: break
    }
  }

  // MARK: What members report

  func noteChange() {
    hasChanged = true
    entry?.wake()
  }

  /// Mixes a packet of a member.
  func take(_ head: SoundDownHead, _ payload: Span<UInt8>, from seat: RoomMixSeat, at now: Nanoseconds) {
    let isResting = mixer.due == nil
    mixer.take(head, payload, from: seat, at: now)
    if isResting { entry?.wake() }
  }

  // MARK: Time

  func run(at now: Nanoseconds) -> Nanoseconds? {
    if hasChanged {
      hasChanged = false
      for member in members.values where member.isOver { member.dropSession() }
    }
    let next = mixer.run(at: now)
    if now >= levelsAt || next == nil { reportLevels(at: now) }
    return next.map { min($0, levelsAt) }
  }

  private func reportLevels(at now: Nanoseconds) {
    levelsAt = now + Self.interval
    let levels = members.values.compactMap { $0.takeLevel() }.sorted { $0.peer < $1.peer }
    if !levels.isEmpty || !isSilent { context.report?(.levels(levels, room: name)) }
    isSilent = levels.isEmpty
  }

  func end() {
    for member in members.values { remove(member) }
    members = [:]
    noteSeats()
    if let entry { context.loop.remove(entry) }
    entry = nil
  }
}
