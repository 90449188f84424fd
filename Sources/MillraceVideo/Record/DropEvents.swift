internal import MillraceCore

/// Posts what was dropped, at most once a second, and how far audio was moved.
struct DropEvents {
  /// The node's event numbers of `late` and `moved`.
  private let late: Int
  private let moved: Int
  private var pending = (pictures: 0, frames: 0)
  private var pace = EventThrottle()

  init(late: Int, moved: Int) {
    self.late = late
    self.moved = moved
  }

  mutating func post(_ encoder: MediaEncoder, _ ports: inout Ports, always: Bool = false) {
    let time = encoder.takeMoved()
    if time != 0 { ports.post(moved) { $0.field("ms", Double(time) / 1e6, decimals: 1) } }
    let more = encoder.takeDropped()
    pending = (pending.pictures + more.pictures, pending.frames + more.frames)
    guard pending != (0, 0), pace.allows(at: ports.now, isLast: always) else { return }
    let (pictures, frames) = pending
    pending = (0, 0)
    ports.post(late) { event in
      event.field("pictures", pictures)
      event.field("samples", frames)
    }
  }
}
