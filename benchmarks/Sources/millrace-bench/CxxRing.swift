import CPeerRings
import MillraceBench

/// A C++ ring from `CPeerRings`.
struct CxxRing: RingPeer {
  let name: String
  private let ring: peer_ring

  static let all = [
    CxxRing(name: "plain C++", ring: PEER_RING_PLAIN), CxxRing(name: "boost", ring: PEER_RING_BOOST),
    CxxRing(name: "moodycamel", ring: PEER_RING_MOODYCAMEL),
  ]

  var missing: String? { peer_ring_is_installed(ring) ? nil : "not installed: make bench-peers" }

  func pushAndPop(rounds: Int) -> Double { peer_ring_push_pop(ring, Int64(rounds)) }

  func bursts(of size: Int, rounds: Int, from writer: Int, to reader: Int) -> Double {
    peer_ring_bursts(ring, Int64(size), Int64(rounds), Int32(writer), Int32(reader))
  }

  func roundTrip(rounds: Int, between core: Int, and other: Int) -> Double {
    peer_ring_round_trip(ring, Int64(rounds), Int32(core), Int32(other))
  }
}
