internal import MillraceCore

/// Tells what of a film was left out, at most once a second, and what was moved.
struct LeftOutEvents {
  /// The node's numbers of the events `late` and `moved`.
  private let late: Int
  private let moved: Int
  private var untold = (pictures: 0, frames: 0)
  private var pace = EventPace()

  init(late: Int, moved: Int) {
    self.late = late
    self.moved = moved
  }

  mutating func tell(_ encoder: FilmEncoder, _ ports: inout Ports, always: Bool = false) {
    let time = encoder.takeMoved()
    if time != 0 { ports.post(moved) { $0.field("ms", Double(time) / 1e6, decimals: 1) } }
    let more = encoder.takeLeftOut()
    untold = (untold.pictures + more.pictures, untold.frames + more.frames)
    guard untold != (0, 0), pace.allows(at: ports.now, isLast: always) else { return }
    let (pictures, frames) = untold
    untold = (0, 0)
    ports.post(late) { event in
      event.field("pictures", pictures)
      event.field("samples", frames)
    }
  }
}
