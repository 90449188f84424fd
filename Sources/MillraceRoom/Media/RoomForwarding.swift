internal import MillraceCore
package import MillraceRTC
internal import MillraceRoomWire
internal import Synchronization

/// The media of a hub with `forward`: packets of sound and whole encoded pictures go from each member to those that want them, as they are.
///
/// A member offers one session. What it sends is received; each medium that it only receives is a slot, which carries one other member at a
/// time. Nothing is decoded: a receiver sees the pictures of those that send in its codec. Who speaks is read from the levels in packets of
/// sound (RFC 6464). Pictures begin with a key frame, and pause where the network of a receiver does not carry them; sound never does. A
/// member that does not take its packets disturbs nobody: they are datagrams.
///
/// ```
///  RoomForwarding ─▸ ForwardingLoop (a thread) ─▸ ForwardedRoom ─▸ ForwardedMember ─▸ RTCSession
///                                                 SlotTable (pure): who is in which slot
/// ```
package final class RoomForwarding: RoomMedia {
  private let loops: [ForwardingLoop]
  private let counters: ForwardingCounters
  /// The rooms of members.
  private let places = Locked<[RoomName: RoomName]>([:])
  private let gate = ReportGate()

  /// Starts its threads.
  /// - Throws: when the system has no thread for it, or OpenSSL makes no certificate.
  package init(_ settings: RoomForwardingSettings = RoomForwardingSettings()) throws(RTCProblem) {
    let identity: DTLSIdentity
    switch DTLSIdentity.process {
    case .success(let made): identity = made
    case .failure(let problem): throw problem
    }
    let counters = ForwardingCounters()
    var loops: [ForwardingLoop] = []
    do throws(RTCProblem) {
      for number in 0..<max(1, settings.loops) {
        let context = ForwardingContext(try RTCLoop(name: "room \(number)"), settings, identity, counters)
        loops.append(ForwardingLoop(context))
      }
    } catch {
      for loop in loops { loop.end {} }
      throw error
    }
    self.counters = counters
    self.loops = loops
  }

  deinit {
    guard gate.shut() else { return }
    for loop in loops { loop.end {} }
  }

  /// What was counted. Any thread.
  package var counts: RoomForwardingCounts { counters.counts }

  package func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) {
    let gate = self.gate
    for loop in loops {
      loop.begin { if gate.isOpen { report($0) } }
    }
  }

  package func perform(_ action: RoomAction) {
    switch action {
    case .send, .close: break
    case .roomBegan(let room), .roomEnded(let room): loop(of: room).perform(action, in: room)
    case .joined(let member, let room, _):
      places.withLock { $0[member.peer] = room }
      loop(of: room).perform(action, in: room)
    case .left(let peer, let room):
      _ = places.withLock { $0.removeValue(forKey: peer) }
      loop(of: room).perform(action, in: room)
    case .offer(let peer, _, _), .candidate(let peer, _), .publishing(let peer, _),
      .subscription(let peer, _),
      .role(let peer, _):
      guard let room = places.withLock({ $0[peer] }) else { return }
      loop(of: room).perform(action, in: room)
    }
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    guard gate.shut() else { return done() }
    let rest = Locked(loops.count)
    for loop in loops {
      loop.end {
        let isLast = rest.withLock { (count: inout Int) -> Bool in
          count -= 1
          return count == 0
        }
        if isLast { done() }
      }
    }
  }

  private func loop(of room: RoomName) -> ForwardingLoop {
    loops[Int(UInt(bitPattern: room.hashValue) % UInt(loops.count))]
  }
}

/// Lets reports pass until the end. Any thread.
private final class ReportGate: Sendable {
  private let isShut = Atomic<Bool>(false)

  var isOpen: Bool { !isShut.load(ordering: .acquiring) }

  /// False: it was shut before.
  func shut() -> Bool { !isShut.exchange(true, ordering: .acquiringAndReleasing) }
}

/// The rooms on a thread. Its functions come from any thread, and take effect on the loop's in their order.
final class ForwardingLoop: @unchecked Sendable {
  private let loop: RTCLoop
  /// On the loop's thread.
  private let context: ForwardingContext
  private var rooms: [RoomName: ForwardedRoom] = [:]

  init(_ context: ForwardingContext) {
    loop = context.loop
    self.context = context
  }

  func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) {
    loop.perform { [self] in context.report = report }
  }

  func perform(_ action: RoomAction, in room: RoomName) {
    loop.perform { [self] in take(action, room) }
  }

  private func take(_ action: RoomAction, _ room: RoomName) {
    switch action {
    case .roomBegan: _ = makeRoom(room)
    case .roomEnded: rooms.removeValue(forKey: room)?.end()
    case .joined(let member, _, _): makeRoom(room).join(member)
    case .left(let peer, _): rooms[room]?.leave(peer)
    default: rooms[room]?.take(action)
    }
  }

  private func makeRoom(_ name: RoomName) -> ForwardedRoom {
    if let room = rooms[name] { return room }
    let room = ForwardedRoom(name, context)
    rooms[name] = room
    return room
  }

  /// Ends all sessions, and then the thread.
  func end(_ done: @escaping @Sendable () -> Void) {
    loop.perform { [self] in
      context.report = nil
      for room in rooms.values { room.end() }
      rooms = [:]
      done()
    }
    loop.stop()
  }
}
