import Testing

@testable import MillraceBench

@Suite("Jitter buffer on synthetic networks")
struct JitterTests {
  @Test(
    "loses no more and waits no longer than a buffer that waits for the same quantile and drops what is late",
    arguments: JitterSimulation.Network.allCases, [0.95, 0.99])
  func networks(network: JitterSimulation.Network, quantile: Double) {
    let plain = network.plain(quantile: quantile)
    for seed in 1...3 as ClosedRange<UInt64> {
      let outcome = JitterSimulation(network, seed: seed).run(quantile: quantile)
      // Without loss, a packet or two of thirty thousand are late.
      #expect(outcome.late <= max(plain.late, 0.01), "\(network), seed \(seed)")
      #expect(outcome.delay <= plain.delay, "\(network), seed \(seed)")
      // Concealed time is what the network lost and what arrived late.
      #expect(
        outcome.concealed <= outcome.lostByNetwork * 1.25 + plain.late + 0.1, "\(network), seed \(seed)")
    }
  }

  @Test("the same seed gives the same outcome, another seed a different one")
  func seeds() {
    let one = JitterSimulation(.spikes, seed: 1).run(quantile: 0.97)
    #expect(JitterSimulation(.spikes, seed: 1).run(quantile: 0.97) == one)
    #expect(JitterSimulation(.spikes, seed: 2).run(quantile: 0.97) != one)
  }
}
