package import MillraceCore
internal import MillraceDSP

extension AudioPlay {
  // MARK: Events

  func post(_ event: Event, _ account: Playout.Account, _ ports: inout Ports) {
    let rate = rate
    ports.post(event.rawValue) { fields in
      fields.field("reply", Int(account.reply))
      fields.field("samples", Int(account.frames))
      fields.field("ms", Double(account.frames) * 1_000 / Double(rate), decimals: 3)
      if event == .interrupted { fields.field("position", Int(account.position)) }
    }
  }

  func postFinished(_ account: Playout.Account, _ ports: inout Ports) {
    if account.reply != 0 && account.frames > 0 { post(.replyFinished, account, &ports) }
  }

  func postAudible(_ place: Int64, _ ports: inout Ports) {
    let reply = playout.account.reply
    guard reply != 0 else { return }
    let heard =
      route == nil
      ? (start ?? 0) &+ .samples(place, rate: rate) &+ latency
      : schedule.heard(schedule.position + place - position)
    ports.post(Event.replyAudible.rawValue) { event in
      event.field("reply", Int(reply))
      event.field("at", Double(heard) / 1e9, decimals: 6)
    }
  }

  mutating func postUnderrun(_ place: Int64, _ ports: inout Ports) {
    guard let since = underrunStart else { return }
    underruns += 1
    let (at, count) = (playout.account.position, underruns)
    let silence = Double(place - since) * 1_000 / Double(rate)
    ports.post(Event.underrun.rawValue) { event in
      event.field("position", Int(at))
      event.field("ms", silence, decimals: 1)
      event.field("count", count)
    }
  }

  mutating func postLate(_ frames: Int, _ ports: inout Ports) {
    lates += 1
    postLoss(.late, frames, lates, &ports)
  }

  mutating func postJump(_ frames: Int, _ ports: inout Ports) {
    jumps += 1
    postLoss(.jump, frames, jumps, &ports)
  }

  private func postLoss(_ event: Event, _ frames: Int, _ count: Int, _ ports: inout Ports) {
    let milliseconds = Double(frames) * 1_000 / Double(rate)
    ports.post(event.rawValue) { fields in
      fields.field("ms", milliseconds, decimals: 1)
      fields.field("count", count)
    }
  }

  /// Posts what happened to the device.
  mutating func postDeviceEvents(_ line: PlaybackLine, _ ports: inout Ports) {
    while let event = line.nextEvent() {
      switch event {
      case .lost: postLost(&ports)
      case .back(let away): postBack(away, &ports)
      }
    }
    let missed = line.takeMissed()
    if missed > 0 { postLate(missed, &ports) }
  }

  /// Posts that the device disappeared.
  package mutating func postLost(_ ports: inout Ports) {
    losses += 1
    lostAt = ports.now
    let count = losses
    ports.post(Event.deviceLost.rawValue) { $0.field("count", count) }
  }

  /// Posts that a device plays again after so many nanoseconds.
  mutating func postBack(_ away: Nanoseconds, _ ports: inout Ports) {
    lostAt = nil
    ports.post(Event.deviceBack.rawValue) { $0.field("ms", Double(away) / 1e6, decimals: 1) }
  }

  mutating func postClock(_ ports: inout Ports) {
    guard ports.now >= nextClock, let clock = schedule.clock else { return }
    nextClock = ports.now &+ Self.clockInterval
    let (skew, drift) = (clock.skew(rate: rate), schedule.control.drift)
    let age = playout.isSilent ? nil : schedule.age(of: playout.time(rate: rate)) / 1e6
    ports.post(Event.deviceClock.rawValue) { event in
      event.field("ppm", skew, decimals: 1)
      event.field("drift", drift, decimals: 1)
      if let age { event.field("age", age, decimals: 2) }
    }
  }
}
