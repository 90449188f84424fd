import MillraceCore
import MillraceRTC
import MillraceRTCWire
import MillraceRoomWire

@testable import MillraceRoom

/// The media of one room that are forwarded, on a loop to which a test has access.
final class DirectMedia: RoomMedia, @unchecked Sendable {
  let loop: RTCLoop
  let counters = ForwardingCounters()
  /// On the loop's thread, as all of it.
  private let context: ForwardingContext
  private(set) var room: ForwardedRoom?

  init() throws {
    var settings = RoomForwardingSettings()
    MediaRig.local(&settings.session)
    loop = try RTCLoop(name: "direct")
    context = ForwardingContext(loop, settings, try DTLSIdentity.process.get(), counters)
  }

  func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) {
    loop.perform { [self] in context.report = report }
  }

  func perform(_ action: RoomAction) {
    loop.perform { [self] in
      switch action {
      case .roomBegan(let name): room = ForwardedRoom(name, context)
      case .joined(let member, _, _): room?.join(member)
      case .left(let peer, _): room?.leave(peer)
      default: room?.take(action)
      }
    }
  }

  func end(_ done: @escaping @Sendable () -> Void) {
    loop.perform { [self] in
      room?.end()
      room = nil
      done()
    }
    loop.stop()
  }

  /// Waits until the hub's side of a session is connected too.
  func connected(_ name: String) async throws {
    while await !with(name, { $0?.session?.state == .connected }) {
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Looks at a member, or has it receive something, on the loop's thread.
  func with<Value: Sendable>(
    _ name: String, _ body: @escaping @Sendable (ForwardedMember?) -> Value
  ) async -> Value {
    await withCheckedContinuation { done in
      loop.perform { [self] in done.resume(returning: body(room?.member(named(name)))) }
    }
  }
}
