/// Losses and delay of `audio.jitter`'s estimator and policy on four synthetic networks, five seeds each.
///
/// Late packets arrived after their playout time; their audio is lost. When nothing has arrived the buffer waits instead, which
/// stretches the audio and counts as `waited`.
enum JitterSuite {
  static func run() throws -> [Figure] {
    var figures: [Figure] = []
    for network in JitterSimulation.Network.allCases {
      let outcomes = (1...5 as ClosedRange<UInt64>).map {
        JitterSimulation(network, seed: $0).run(quantile: 0.97)
      }
      func figure(
        _ what: String, _ unit: String, goal: String = "", _ value: (JitterSimulation.Outcome) -> Double
      ) -> Figure {
        Figure("jitter", "\(network.name): \(what)", unit: unit, goal: goal, samples: outcomes.map(value))
      }
      let plain = network.plain(quantile: 0.99)
      figures += [
        figure("late", "%", goal: "<= \(plain.late)") { $0.late },
        figure("waited", "%") { $0.waited },
        figure("concealed", "%") { $0.concealed },
        figure("stretched", "%") { $0.stretched },
        figure("mean delay", "ms", goal: "<= \(plain.delay)") { $0.delay },
      ]
    }
    return figures
  }
}
