internal import MillraceCore
internal import MillraceRoomWire

/// Offers to the hub that have not been answered yet.
struct OfferTable: Sendable {
  /// An offer: who has made it, by which request.
  struct Offer: Sendable, Hashable {
    let peer: RoomName
    let request: Int
  }

  /// Offers of one peer at once; a client makes the next when it has the answer to the one before.
  static let mostOfPeer = 4

  private let timeout: Nanoseconds
  private var requests: [RoomName: [Int]] = [:]
  private var due = Deadlines<Offer>()

  init(_ settings: RoomHubSettings) { timeout = Nanoseconds(settings.offerSeconds) * 1_000_000_000 }

  var count: Int { due.count }
  var deadline: Nanoseconds? { due.next }

  mutating func insert(_ offer: Offer, at now: Nanoseconds) throws(RoomError) {
    guard requests[offer.peer, default: []].count < Self.mostOfPeer else {
      throw RoomError.tooMany("offers that wait for an answer", after: 1_000_000_000)
    }
    requests[offer.peer, default: []].append(offer.request)
    due.set(offer, now + timeout)
  }

  /// Removes an offer; false: it no longer waits.
  mutating func remove(_ offer: Offer) -> Bool {
    guard due[offer] != nil else { return false }
    due.remove(offer)
    forget(offer)
    return true
  }

  /// Removes all offers of a peer, and returns their requests.
  mutating func removeAll(of peer: RoomName) -> [Int] {
    let waiting = requests.removeValue(forKey: peer) ?? []
    for request in waiting { due.remove(Offer(peer: peer, request: request)) }
    return waiting
  }

  /// An offer that has waited for too long.
  mutating func popDue(at now: Nanoseconds) -> Offer? {
    guard let offer = due.popDue(at: now) else { return nil }
    forget(offer)
    return offer
  }

  private mutating func forget(_ offer: Offer) {
    requests[offer.peer]?.removeAll { $0 == offer.request }
    if requests[offer.peer]?.isEmpty == true { requests[offer.peer] = nil }
  }
}
