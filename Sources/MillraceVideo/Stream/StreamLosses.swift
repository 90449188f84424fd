internal import MillraceCore

/// Reports what a node's streams have lost: packets that could not be decoded, and pictures that the graph did not take in time. At most
/// once a second, and completely at the end of a connection; the counts continue from stream to stream.
struct StreamLosses {
  private let events: (damaged: Int, overrun: Int)
  /// Lost by the streams before the present one.
  private var past = (damage: 0, lost: 0)
  private var damaged = CountedEvent()
  private var overrun = CountedEvent()

  /// - Parameters: the indices of the node's events.
  init(damaged: Int, overrun: Int) { events = (damaged, overrun) }

  /// Posts what is due.
  mutating func report(_ update: PullThread.Update, _ ports: inout Ports, isLast: Bool) {
    let (damage, lost) = (past.damage + update.damage, past.lost + update.lost)
    if damaged.isDue(damage, at: ports.now, isLast: isLast) {
      ports.post(events.damaged) { $0.field("count", damage) }
    }
    if overrun.isDue(lost, at: ports.now, isLast: isLast) {
      ports.post(events.overrun) { $0.field("count", lost) }
    }
  }

  /// The stream of this update is over.
  mutating func close(_ update: PullThread.Update) {
    past.damage += update.damage
    past.lost += update.lost
  }
}
