internal import MillraceCore
internal import MillraceRTC
internal import MillraceRoomWire
internal import Synchronization

/// The threads of a hub's media. A room lives on one of them. Any thread.
final class MediaLoops: Sendable {
  private let loops: [MediaLoop]
  /// The rooms of members.
  private let places = Locked<[RoomName: RoomName]>([:])
  private let gate = ReportGate()

  /// Starts the threads.
  /// - Parameter make: what makes rooms on a loop.
  /// - Throws: when the system has no thread for it, or OpenSSL makes no certificate.
  init(_ count: Int, _ make: (RTCLoop, DTLSIdentity) -> MediaLoop) throws(RTCProblem) {
    let identity: DTLSIdentity
    switch DTLSIdentity.process {
    case .success(let made): identity = made
    case .failure(let problem): throw problem
    }
    var loops: [MediaLoop] = []
    do throws(RTCProblem) {
      for number in 0..<max(1, count) {
        loops.append(make(try RTCLoop(name: "room \(number)"), identity))
      }
    } catch {
      for loop in loops { loop.end {} }
      throw error
    }
    self.loops = loops
  }

  deinit {
    guard gate.shut() else { return }
    for loop in loops { loop.end {} }
  }

  func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) {
    let gate = self.gate
    for loop in loops {
      loop.begin { if gate.isOpen { report($0) } }
    }
  }

  func perform(_ action: RoomAction) {
    switch action {
    case .roomBegan(let room), .roomEnded(let room): loop(of: room).perform(action, in: room)
    case .joined(let member, let room, _):
      places.withLock { $0[member.peer] = room }
      loop(of: room).perform(action, in: room)
    case .left(let peer, let room):
      _ = places.withLock { $0.removeValue(forKey: peer) }
      loop(of: room).perform(action, in: room)
    case .offer(let peer, _, _), .withdrawn(let peer, _), .candidate(let peer, _),
      .publishing(let peer, _), .subscription(let peer, _), .role(let peer, _):
      guard let room = places.withLock({ $0[peer] }) else { return }
      loop(of: room).perform(action, in: room)
    default: break
    }
  }

  func end(_ done: @escaping @Sendable () -> Void) {
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

  private func loop(of room: RoomName) -> MediaLoop {
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
final class MediaLoop: @unchecked Sendable {
  private let loop: RTCLoop
  /// On the loop's thread, as the rest.
  private let context: MediaContext
  private let make: (RoomName) -> any MediaRoom
  private var rooms: [RoomName: any MediaRoom] = [:]

  /// - Parameter make: makes a room.
  init(_ context: MediaContext, _ make: @escaping (RoomName) -> any MediaRoom) {
    loop = context.loop
    self.context = context
    self.make = make
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

  private func makeRoom(_ name: RoomName) -> any MediaRoom {
    if let room = rooms[name] { return room }
    let room = make(name)
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
