import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire
import Synchronization
import Testing

@testable import MillraceRoom

/// A member with a session of its own that it offers to the hub. On its loop's thread, but for `seen`.
final class MediaClient: RTCSessionObserver, @unchecked Sendable {
  struct Seen: Sendable {
    var states: [RTCSessionState] = []
    var sounds: [(mid: String, bytes: [UInt8])] = []
    /// Of sound, whole.
    var payloads: [[UInt8]] = []
    var pictures: [[UInt8]] = []
    var keyFramesWanted = 0
  }

  let peer: RoomName
  /// What it takes of the hub's answers; nil: nothing.
  let answered: @Sendable (String) -> String?
  let seen = Locked(Seen())
  private(set) var session: RTCSession?
  private let onOffer: @Sendable (String) -> Void
  private let clock = Clock(.realtime)

  init(
    _ peer: RoomName, _ sections: [MediaSection], on loop: RTCLoop, _ identity: DTLSIdentity,
    answered: @escaping @Sendable (String) -> String?, offer: @escaping @Sendable (String) -> Void
  ) {
    self.peer = peer
    self.answered = answered
    onOffer = offer
    var settings = RTCSessionSettings()
    MediaRig.local(&settings)
    settings.sections = sections
    session = RTCSession(on: loop, settings, identity, observer: self)
  }

  /// Sends a packet of 20 ms of Opus, with these bytes in it.
  func say(_ bytes: [UInt8], attenuation: UInt8 = 20) {
    send([0x78] + bytes, attenuation: attenuation)
  }

  /// Sends a packet of 20 ms of Opus.
  func send(_ payload: [UInt8], attenuation: UInt8 = 20) {
    session?.send(
      payload.span, duration: 960, level: RTPAudioLevel(attenuation: attenuation, hasSpeech: true))
  }

  func show(_ picture: [UInt8], isKey: Bool, on medium: Int? = nil) {
    session?.send(picture: picture.span, isKey: isKey, captured: clock.now, on: medium)
  }

  func sessionDescribed(_ description: SessionDescription) { onOffer(description.text) }
  func sessionFound(_ candidate: ICECandidate?) {}
  func sessionChanged(_ state: RTCSessionState) { seen.withLock { $0.states.append(state) } }
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    let bytes = payload.indices.map { payload[$0] }
    let mid = session?.media[sound.medium].mid ?? ""
    seen.withLock { (seen: inout Seen) -> Void in
      seen.sounds.append((mid, Array(bytes.dropFirst())))
      seen.payloads.append(bytes)
    }
  }
  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    let bytes = bytes.indices.map { bytes[$0] }
    seen.withLock { $0.pictures.append(bytes) }
  }
  func sessionReceived(_ tone: ReceivedTone) {}
  func sessionEnded(source: UInt32, reason: String?) {}
  func sessionWantsKeyFrame(medium: Int) { seen.withLock { $0.keyFramesWanted += 1 } }
  func sessionAllocated(sound: Int, video: Int) {}
  func sessionReceived(_ event: DataChannelEvent) {}
}

/// A hub's media, and clients of it over loopback.
final class MediaRig: @unchecked Sendable {
  let room = named("lobby")
  let media: any RoomMedia
  private let forwarding: RoomForwarding?
  let loop: RTCLoop
  let reports = Locked<[RoomMediaReport]>([])
  /// What members have offered, after the media got it.
  let offers = Locked<[String: [String]]>([:])
  private let identity: DTLSIdentity
  private let clients = Locked<[RoomName: MediaClient]>([:])
  private let turn = Locked<Int>(0)
  private let requests = Locked<Int>(0)

  /// With media that are forwarded.
  convenience init(_ change: (inout RoomForwardingSettings) -> Void = { _ in }) throws {
    var settings = RoomForwardingSettings()
    Self.local(&settings.session)
    change(&settings)
    let media = try RoomForwarding(settings)
    try self.init(media, media)
  }

  init(_ media: any RoomMedia, _ forwarding: RoomForwarding? = nil) throws {
    self.media = media
    self.forwarding = forwarding
    loop = try RTCLoop()
    identity = try DTLSIdentity()
    media.begin { [weak self] in self?.take($0) }
    act(.roomBegan(room))
  }

  /// Within this machine, and patient: among hundreds of tests a process may not run for seconds.
  static func local(_ settings: inout RTCSessionSettings) {
    settings.ice.addresses = ["127.0.0.1"]
    settings.ice.hasConsent = false
    settings.connect = .milliseconds(600_000)
  }

  /// Actions come one at a time.
  func act(_ action: RoomAction) { turn.withLock { _ in media.perform(action) } }

  func stop() {
    media.end {}
    loop.stop()
  }

  func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(2)) }
  }

  // MARK: Members

  /// - Parameter room: one that has begun; nil: the rig's.
  func join(_ name: String, role: RoomRole = .host, in room: RoomName? = nil) {
    let member = RoomMember(named(name), user: named(name), name: name, role: role)
    act(.joined(member, room: room ?? self.room, connection: RoomConnectionID(1)))
  }

  func publish(_ name: String, _ track: RoomTrack, _ isOn: Bool = true, source: RoomVideoSource? = nil) {
    act(.publishing(named(name), RoomPublication(track, isOn: isOn, source: source)))
  }

  /// Returns when the media have carried out all actions before, of a room with this member.
  func carriedOut(_ name: String) async throws {
    let request = offer(name, "hello")
    try await until { errors()[request] != nil }
  }

  func subscribe(_ name: String, _ track: RoomTrack, _ isOn: Bool = true, to peer: String? = nil) {
    act(.subscription(named(name), RoomSubscription(track, isOn: isOn, peer: peer.map { named($0) })))
  }

  /// Offers a text as it is.
  func offer(_ name: String, _ sdp: String) -> Int {
    let request = requests.withLock { (count: inout Int) -> Int in
      count += 1
      return count
    }
    act(.offer(named(name), sdp: sdp, request: request))
    offers.withLock { $0[name, default: []].append(sdp) }
    return request
  }

  /// Makes a session and has it offer; the answer goes to it.
  @discardableResult
  func connect(
    _ name: String, _ sections: [MediaSection], change: @escaping @Sendable (String) -> String = { $0 },
    answered: @escaping @Sendable (String) -> String? = { $0 }
  ) -> MediaClient {
    let client = MediaClient(named(name), sections, on: loop, identity, answered: answered) {
      [weak self] sdp in
      _ = self?.offer(name, change(sdp))
    }
    clients.withLock { $0[named(name)] = client }
    loop.perform { client.session?.offer() }
    return client
  }

  func isConnected(_ clients: MediaClient...) -> Bool {
    clients.allSatisfy { $0.seen.withLock { $0.states.last } == .connected }
  }

  /// What was forwarded.
  var counts: RoomForwardingCounts { forwarding?.counts ?? RoomForwardingCounts() }

  // MARK: Reports

  private func take(_ report: RoomMediaReport) {
    reports.withLock { $0.append(report) }
    guard case .answered(let peer, _, .success(let sdp)) = report,
      let client = clients.withLock({ $0[peer] }), let text = client.answered(sdp),
      let answer = try? SessionDescription(parsing: text)
    else { return }
    loop.perform { client.session?.accept(answer) }
  }

  /// What is in the slots of a member, by mid.
  func slots(_ name: String, _ track: RoomTrack = .audio) -> [String: RoomName] {
    var slots: [String: RoomName] = [:]
    for case .assigned(let slot, let peer) in reports.withLock({ $0 })
    where peer == named(name) && slot.track == track {
      slots[slot.mid] = slot.peer
    }
    return slots
  }

  /// A slot was reported, whatever followed.
  func wasAssigned(_ name: String, _ slot: RoomSlot) -> Bool {
    for case .assigned(let told, let peer) in reports.withLock({ $0 }) where peer == named(name) {
      if told == slot { return true }
    }
    return false
  }

  func errors() -> [Int: RoomErrorName] {
    var errors: [Int: RoomErrorName] = [:]
    for case .answered(_, let request, .failure(let error)) in reports.withLock({ $0 }) {
      errors[request] = error.name
    }
    return errors
  }

  func answers(_ name: String) -> [String] {
    var answers: [String] = []
    for case .answered(let peer, _, .success(let sdp)) in reports.withLock({ $0 }) where peer == named(name) {
      answers.append(sdp)
    }
    return answers
  }

  func keyFrames(of name: String) -> Int {
    var count = 0
    for case .wantsKeyFrame(let peer) in reports.withLock({ $0 }) where peer == named(name) { count += 1 }
    return count
  }

  var levels: [[RoomLevel]] {
    var all: [[RoomLevel]] = []
    for case .levels(let levels, _) in reports.withLock({ $0 }) { all.append(levels) }
    return all
  }
}

/// Encoded pictures of no meaning.
enum MediaPicture {
  static func h264(isKey: Bool, number: Int) -> [UInt8] {
    let start: [UInt8] = [0, 0, 0, 1]
    let sets = isKey ? start + [0x67, 0x42, 0xE0, 0x1F, 0x80] + start + [0x68, 0xCE, 0x3C, 0x80] : []
    return sets + start + [isKey ? 0x65 : 0x41, 0x88] + content(number)
  }

  static func vp8(isKey: Bool, number: Int) -> [UInt8] {
    let head: [UInt8] =
      isKey ? [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00] : [0x11, 0x02, 0x00]
    return head + content(number)
  }

  /// Without zeros, which H.264 would escape.
  private static func content(_ number: Int) -> [UInt8] {
    (0..<400).map { UInt8(1 + ($0 &* 7 &+ number &* 31) % 250) }
  }
}
