internal import NIOCore
internal import NIOSSL
internal import Synchronization

/// Figures of a server's door that may be read from any thread.
final class DoorFigures: Sendable {
  let halfOpen = Atomic<Int>(0)
  let visitors = Atomic<Int>(0)
  let refused = Atomic<Int>(0)
}

/// Applies the door of one server: counts its visitors, refuses those it has to, and reports refusals. On the loop.
final class Doorkeeper {
  /// Time between two reports of refusals at least: a flood of visitors must not become one of events.
  private static let tellInterval = TimeAmount.seconds(1)

  let door: WebSocketDoor
  private let figures: DoorFigures
  private let loop: any EventLoop
  private let tell: @Sendable (WebSocketDoor.Refusals) -> Void
  /// The name it listens at, in lower case.
  private let host: String
  private let certificate: NIOSSLCertificate?
  private var count: DoorCount
  private var untold = 0
  private var total = 0
  private var latest: (refusal: WebSocketDoor.Refusal, place: String)?
  private var isResting = false

  init(
    _ door: WebSocketDoor, host: String, certificate: NIOSSLCertificate?, figures: DoorFigures,
    on loop: any EventLoop,
    tell: @escaping @Sendable (WebSocketDoor.Refusals) -> Void
  ) {
    self.door = door
    self.host = host.lowercased()
    self.certificate = certificate
    self.figures = figures
    self.loop = loop
    self.tell = tell
    count = DoorCount(door)
  }

  // MARK: Coming and going

  /// Somebody connects. Why they may not stay; nil: they may.
  func arrive(from address: DoorCount.Address) -> WebSocketDoor.Refusal? {
    defer { publish() }
    return count.arrive(from: address)
  }

  func enter(from address: DoorCount.Address) {
    count.enter(from: address)
    publish()
  }

  func leave(from address: DoorCount.Address, wasIn: Bool) {
    count.leave(from: address, wasIn: wasIn)
    publish()
  }

  private func publish() {
    figures.halfOpen.store(count.halfOpen, ordering: .relaxed)
    figures.visitors.store(count.visitors, ordering: .relaxed)
  }

  /// Why somebody who asks for a WebSocket gets none; nil: they may come in.
  func refusal(of request: WebSocketDoor.Request) -> WebSocketDoor.Refusal? {
    door.refusal(of: request) { name in
      name == host || certificate.map { ServerName(name).isHeld(by: $0) } ?? false
    } ?? count.refusal
  }

  // MARK: Telling

  func note(_ refusal: WebSocketDoor.Refusal, from place: String) {
    total += 1
    untold += 1
    latest = (refusal, place)
    figures.refused.store(total, ordering: .relaxed)
    if !isResting { tellNow() }
  }

  private func tellNow() {
    guard untold > 0, let latest else { return }
    tell(
      WebSocketDoor.Refusals(count: untold, total: total, latest: latest.refusal, place: latest.place))
    untold = 0
    isResting = true
    let bound = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(in: Self.tellInterval) {
      bound.value.isResting = false
      bound.value.tellNow()
    }
  }
}
