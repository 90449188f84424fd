import Millrace

/// How long calls take to begin.
enum CallStart {
  private static let rounds = 20
  private static let lossyCalls = 30
  /// Seconds after which a call counts as one that did not connect. The node itself gives up a connection after 15.
  private static let patience = 30.0

  /// On this machine's address, with nothing in the way.
  static func run(_ stage: CallStage) throws -> [Figure] {
    var times: [Double] = []
    for _ in 0..<rounds {
      let call = try stage.begin()
      let time = call.wait(seconds: patience)
      try call.check()
      try call.hangUp()
      guard let time else { throw MeasurementProblem("nothing was heard within \(Int(patience)) s") }
      times.append(time)
    }
    let name = "from the request to the first decoded sound"
    return [
      Figure(RTCSuite.name, name, unit: "ms", goal: "<= 150", samples: times),
      PythonPeer.figure(name, rounds: rounds),
    ]
  }

  /// Over a link that loses datagrams, one call after the other.
  static func lossy(_ stage: CallStage) throws -> [Figure] {
    var (times, losses): ([Double], [Double]) = ([], [])
    for number in 0..<lossyCalls {
      let network = LossyNetwork(seed: UInt64(2 * number + 1))
      let call = try stage.begin(CallStage.Form(network: network))
      if let time = call.wait(seconds: patience) { times.append(time) }
      if let relay = call.relay { losses.append(100 * relay.link.lossSoFar) }
      try call.hangUp()
    }
    let name = "5 % lost in bursts, 60 ms round trip"
    func row(_ what: String, _ unit: String, goal: String = "", _ samples: [Double]) -> Figure {
      Figure(RTCSuite.name, "\(name): \(what)", unit: unit, goal: goal, samples: samples)
    }
    return [
      row("calls of \(lossyCalls) heard", "", goal: "\(lossyCalls)", [Double(times.count)]),
      row("to the first decoded sound", "ms", goal: "<= 1600", times),
      row("the same, worst", "ms", goal: "<= 15000", times.max().map { [$0] } ?? []),
      row("lost while connecting, each call", "%", losses),
    ]
  }
}
