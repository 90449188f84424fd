import Millrace
import MillraceCore

/// The sound of one call: its delay, and what losses do to it.
enum CallSound {
  private static let settling = 4.0
  /// Milliseconds of a packet, and of the jitter buffer's target, which is fixed for the measurement of delay.
  private static let frame = 20
  private static let target = 20
  private static let delaySeconds = 25.0
  private static let lossySeconds = 30.0
  private static let outage = (share: 0.2, seconds: 10.0)
  private static let recovery = 8.0

  static func run(_ stage: CallStage) throws -> [Figure] {
    try delay(stage) + losses(stage)
  }

  // MARK: Delay

  /// From the capture of a sample to the moment at which the other graph has it decoded.
  private static func delay(_ stage: CallStage) throws -> [Figure] {
    let jitter = #""ptime": \#(frame), "jitterLeast": \#(target), "jitterMost": \#(target)"#
    let call = try stage.established(CallStage.Form(signal: "bursts", parameters: jitter))
    pause(settling)
    call.ear.reset()
    pause(delaySeconds)
    let onsets = call.ear.heard.onsets
    let offset = DialogueStage.epoch(of: call.callee) - DialogueStage.epoch(of: call.caller)
    try call.check()
    try call.hangUp()
    // Bursts begin at whole seconds of the caller's clock.
    let times = onsets.map { Double(($0 + offset) % CallVoice.burstPeriod) / 1e6 }
    let name = "mouth to ear"
    return [
      Figure(RTCSuite.name, name, unit: "ms", samples: times),
      Figure(
        RTCSuite.name, "\(name), beyond \(frame) ms of frame and \(target) ms of jitter target", unit: "ms",
        goal: "<= 60", samples: times.map { $0 - Double(frame + target) }),
    ]
  }

  // MARK: Losses

  private static func losses(_ stage: CallStage) throws -> [Figure] {
    let call = try stage.established(CallStage.Form(network: LossyNetwork(seed: 77)))
    guard let link = call.relay?.link else { throw MeasurementProblem("a lossy call has no link") }
    pause(settling)
    call.ear.reset()
    pause(lossySeconds)
    let steady = call.ear.heard
    link.set(loss: outage.share)
    call.ear.reset()
    pause(outage.seconds)
    let during = call.ear.heard
    link.set(loss: 0)
    let end = seconds()
    pause(recovery)
    let after = call.ear.heard
    try call.check()
    try call.hangUp()
    func milliseconds(_ time: Nanoseconds) -> Double { Double(time) / 1e6 }
    func row(_ what: String, _ value: Double, _ unit: String = "ms", goal: String = "") -> Figure {
      Figure(RTCSuite.name, what, unit: unit, goal: goal, samples: [value])
    }
    let name = "5 % lost for \(Int(lossySeconds)) s"
    let broken = Double(after.brokenAt) / 1e9
    return [
      row(
        "\(name): longest silence that was not filled", milliseconds(steady.longestSilence), goal: "<= 120"),
      row("\(name): silences beyond 60 ms", Double(steady.silences), ""),
      row(
        "20 % lost for \(Int(outage.seconds)) s: longest silence that was not filled",
        milliseconds(during.longestSilence)),
      row("20 % lost: from its end until the sound is whole", max(0, broken - end) * 1e3),
    ]
  }
}
