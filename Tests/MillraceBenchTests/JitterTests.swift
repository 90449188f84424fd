import Testing

@testable import MillraceBench

@Suite("Jitter buffer, on made-up networks")
struct JitterTests {
  @Test(
    "loses no more and waits no longer than a buffer that waits for the same quantile and drops what is late",
    arguments: JitterSimulation.Network.allCases, [0.95, 0.99])
  func networks(network: JitterSimulation.Network, quantile: Double) {
    let plain = network.plain(quantile: quantile)
    for seed in 1...3 as ClosedRange<UInt64> {
      let outcome = JitterSimulation(network, seed: seed).run(quantile: quantile)
      // A network without loss gives a packet or two in thirty thousand.
      #expect(outcome.late <= max(plain.late, 0.01), "\(network), seed \(seed)")
      #expect(outcome.delay <= plain.delay, "\(network), seed \(seed)")
      // What is concealed is what the network lost, and what came too late.
      #expect(
        outcome.concealed <= outcome.lostByNetwork * 1.25 + plain.late + 0.1, "\(network), seed \(seed)")
    }
  }

  @Test("the same network gives the same outcome, another seed another one")
  func seeds() {
    let one = JitterSimulation(.spikes, seed: 1).run(quantile: 0.97)
    #expect(JitterSimulation(.spikes, seed: 1).run(quantile: 0.97) == one)
    #expect(JitterSimulation(.spikes, seed: 2).run(quantile: 0.97) != one)
  }
}
