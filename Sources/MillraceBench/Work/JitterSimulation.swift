import Glibc
import MillraceDSP

/// Ten minutes of 20 ms packets over a synthetic network, and what a jitter buffer does with them: the estimator and the policy of
/// `audio.jitter`, without audio. The same network gives the same numbers on every machine.
struct JitterSimulation {
  /// A network. The figures of `plain` are those of a quantile buffer (delays in steps of 20 ms) with the same kind of arrivals,
  /// which counts a packet as lost when it has not arrived at its time; measured once, by a separate program.
  enum Network: Int, CaseIterable {
    case quiet, wireless, spikes, changing

    var name: String {
      switch self {
      case .quiet: "jitter 3 ms"
      case .wireless: "jitter 15 ms, 1 % lost"
      case .spikes: "spikes of 60-210 ms, 2.8 % lost in bursts"
      case .changing: "jitter 4, 40, 4 ms"
      }
    }

    /// Percent late and mean delay in ms of the plain buffer at the quantile 0.95 or 0.99.
    func plain(quantile: Double) -> (late: Double, delay: Double) {
      switch self {
      case .quiet: (0, 40)
      case .wireless: (0, 60)
      case .spikes: quantile < 0.97 ? (1.21, 63) : (0.83, 85)
      case .changing: quantile < 0.97 ? (0.69, 58) : (0.11, 68)
      }
    }
  }

  /// The result.
  struct Outcome: Equatable {
    /// Percent of packets that arrived after their playout time.
    var late = 0.0
    /// Percent of packets the network lost.
    var lostByNetwork = 0.0
    /// Percent of time filled while nothing had arrived.
    var waited = 0.0
    /// Percent of time concealed because packets were missing.
    var concealed = 0.0
    /// Percent of time played faster or slower.
    var stretched = 0.0
    /// Mean playout delay behind the fastest packet, in ms.
    var delay = 0.0
  }

  static let packets = 30_000
  private static let packet: Int64 = 20_000_000

  private let arrivals: [Int64?]

  /// Generates the arrivals of a network; nil: lost.
  init(_ network: Network, seed: UInt64 = 1) {
    var random = Xoshiro256(seed: seed &* 77_777 &+ UInt64(network.rawValue))
    func uniform() -> Double { (random.nextUnit() + 1) / 2 }
    func normal() -> Double { sqrt(-2 * log(uniform() + 1e-18)) * cos(2 * Double.pi * uniform()) }
    var spike = 0.0
    var isBad = false
    arrivals = (0..<Self.packets).map { index in
      var (delay, isLost) = (20.0, false)
      switch network {
      case .quiet: delay += abs(normal()) * 3
      case .wireless:
        delay += abs(normal()) * 15
        isLost = uniform() < 0.01
      case .spikes:
        delay -= log(uniform() + 1e-18) * 10
        if uniform() < 0.002 { spike = 60 + uniform() * 150 }
        delay += spike
        spike = max(0, spike - 20)
        isBad = isBad ? uniform() >= 0.3 : uniform() < 0.01
        isLost = isBad && uniform() < 0.8
      case .changing:
        let isMiddle = index >= Self.packets / 3 && index < 2 * Self.packets / 3
        delay += abs(normal()) * (isMiddle ? 40 : 4)
      }
      return isLost ? nil : Int64((Double(index) * 20 + delay) * 1e6)
    }
  }

  /// Plays the arrivals in steps of 10 ms.
  func run(quantile: Double, limits: ClosedRange<Int64> = 20_000_000...400_000_000) -> Outcome {
    var estimator = JitterEstimator(quantile: quantile)
    var steps = JitterPolicy(limits: limits)
    let order = arrivals.indices.filter { arrivals[$0] != nil }.sorted { arrivals[$0]! < arrivals[$1]! }
    var isThere = [Bool](repeating: false, count: arrivals.count + 50)
    var next = 0
    /// Media time of what is played next.
    var media: Int64 = 0
    var begin: Int64?
    var time: Int64 = 0
    var (late, waited, concealed, stretched, total) = (0, 0, 0, 0, 0)
    var delays = 0.0
    while media < Int64(arrivals.count - 50) * Self.packet {
      time += JitterPolicy.length
      while next < order.count, arrivals[order[next]]! <= time {
        let index = order[next]
        next += 1
        estimator.note(media: Int64(index) * Self.packet, arrival: arrivals[index]!)
        if Int64(index + 1) * Self.packet <= media { late += 1 } else { isThere[index] = true }
        begin = begin ?? time
      }
      guard let begin, let base = estimator.base,
        time >= begin + max(estimator.target, limits.lowerBound) || total > 0
      else { continue }
      total += 1
      let delay = time - media - base
      delays += Double(delay)
      let place = Int(media / Self.packet)
      let later = (place + 1..<place + 40).first { isThere[$0] }
      if !isThere[place], let later {
        media += steps.credit(for: Int64(later) * Self.packet - media)
      }
      let isDue = isThere[Int(media / Self.packet)]
      switch steps.next(hasNext: isDue, hasLater: later != nil, delay: delay, target: estimator.target) {
      case .play(let speed):
        media += Int64(Double(JitterPolicy.length) * speed)
        if speed != 1 { stretched += 1 }
      case .concealLoss:
        media += JitterPolicy.length
        concealed += 1
      case .wait: waited += 1
      }
    }
    func percent(_ count: Int, of all: Int) -> Double { 100 * Double(count) / Double(max(1, all)) }
    return Outcome(
      late: percent(late, of: arrivals.count),
      lostByNetwork: percent(arrivals.count { $0 == nil }, of: arrivals.count),
      waited: percent(waited, of: total), concealed: percent(concealed, of: total),
      stretched: percent(stretched, of: total), delay: delays / Double(max(1, total)) / 1e6)
  }
}
