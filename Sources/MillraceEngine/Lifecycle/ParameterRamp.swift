internal import MillraceCore
internal import MillraceGraph

/// One linear ramp of a live parameter, with a step every 10 ms.
struct ParameterRamp: Sendable {
  /// Time between two steps: half a voice packet, short enough that steps of a gain in decibels are inaudible.
  static let stepTime: Nanoseconds = .milliseconds(10)

  let key: LiveValues.Key
  /// Unique among the ramps of the run.
  let number: Int
  /// The value at `start`.
  let origin: Double
  let target: Double
  /// Graph time.
  let start: Nanoseconds
  /// More than 0.
  let duration: Nanoseconds

  var end: Nanoseconds { start + duration }

  /// The value due at a graph time.
  func value(at time: Nanoseconds) -> Double {
    guard time < end else { return target }
    let part = Double(max(0, time - start)) / Double(duration)
    // Rounding must not leave the range between the two ends.
    return min(max(origin + (target - origin) * part, min(origin, target)), max(origin, target))
  }

  /// The time of the first step after a given time.
  func nextStep(after time: Nanoseconds) -> Nanoseconds {
    min(end, start + (max(0, time - start) / Self.stepTime + 1) * Self.stepTime)
  }
}

extension GraphRun {
  /// Longer than any run, and its sum with a graph time does not overflow.
  private static let longestRamp: Duration = .seconds(1_000_000_000)

  func ramp(_ key: LiveValues.Key, to target: Double, over duration: Duration) throws(ControlProblem) {
    let node = plan.nodes[key.node]
    let index = try LiveCheck.rampIndex(node, key.parameter)
    _ = try LiveCheck.check(node, key.parameter, .number(target))
    guard duration >= .zero else {
      throw ControlProblem(
        "a ramp of \"\(key.parameter)\" cannot take \(duration); its duration must be 0 or more", .wrongValue)
    }
    guard duration > .zero, let origin = value(of: key)?.asNumber else {
      return try set(key, to: .number(target), isChoice: true)
    }
    try checkTakesMessages(key.node)
    secrets.add(node.contract.parameters[index].hiddenTexts(of: .number(target)))
    let length = max(1, min(duration, Self.longestRamp).nanoseconds)
    let number = liveValues.withLock { $0.beginRamp(of: key, to: .number(target)) }
    let ramp = ParameterRamp(
      key: key, number: number, origin: origin, target: target, start: graphTime, duration: length)
    schedule(ramp, at: ramp.nextStep(after: ramp.start))
  }

  private func schedule(_ ramp: ParameterRamp, at time: Nanoseconds) {
    schedule(at: time) { [weak self] in self?.step(ramp, at: time) }
  }

  /// Carries out one step and schedules the next.
  private func step(_ ramp: ParameterRamp, at planned: Nanoseconds) {
    let time = engine.clock == .virtual ? planned : max(planned, graphTime)
    let value = ParameterValue.number(ramp.value(at: time))
    let isOver = liveValues.withLock { values -> Bool in
      guard values.isUnderWay(ramp.number, of: ramp.key) else { return true }
      do throws(ControlProblem) {
        let (index, live) = try LiveCheck.check(plan.nodes[ramp.key.node], ramp.key.parameter, value)
        try send(.set(parameter: index, live), to: ramp.key.node)
        values.record(value, for: ramp.key, isChoice: false)
        if time >= ramp.end { values.endRamp(of: ramp.key) }
        return time >= ramp.end
      } catch {
        if error.code != .mailboxFull { values.endRamp(of: ramp.key) }
        return error.code != .mailboxFull
      }
    }
    guard !isOver else { return }
    schedule(ramp, at: time < ramp.end ? ramp.nextStep(after: time) : time + ParameterRamp.stepTime)
  }
}
