internal import MillraceCore
internal import MillraceDSP

extension AudioPlay {
  // MARK: Events

  func tell(_ event: Event, _ account: Playout.Account, _ ports: inout Ports) {
    let rate = rate
    ports.post(event.rawValue) { fields in
      fields.field("reply", Int(account.reply))
      fields.field("samples", Int(account.frames))
      fields.field("ms", Double(account.frames) * 1_000 / Double(rate), decimals: 3)
      if event == .interrupted { fields.field("position", Int(account.position)) }
    }
  }

  func tellFinished(_ account: Playout.Account, _ ports: inout Ports) {
    if account.reply != 0 && account.frames > 0 { tell(.replyFinished, account, &ports) }
  }

  func tellAudible(_ place: Int64, _ ports: inout Ports) {
    let reply = playout.account.reply
    guard reply != 0 else { return }
    let heard =
      route == nil
      ? (start ?? 0) &+ .samples(place, rate: rate) &+ latency : pace.heard(pace.position + place - position)
    ports.post(Event.replyAudible.rawValue) { event in
      event.field("reply", Int(reply))
      event.field("at", Double(heard) / 1e9, decimals: 6)
    }
  }

  mutating func tellUnderrun(_ place: Int64, _ ports: inout Ports) {
    guard let since = dryAt else { return }
    underruns += 1
    let (at, count) = (playout.account.position, underruns)
    let silence = Double(place - since) * 1_000 / Double(rate)
    ports.post(Event.underrun.rawValue) { event in
      event.field("position", Int(at))
      event.field("ms", silence, decimals: 1)
      event.field("count", count)
    }
  }

  mutating func tellLate(_ frames: Int, _ ports: inout Ports) {
    lates += 1
    tellLoss(.late, frames, lates, &ports)
  }

  mutating func tellJump(_ frames: Int, _ ports: inout Ports) {
    jumps += 1
    tellLoss(.jump, frames, jumps, &ports)
  }

  private func tellLoss(_ event: Event, _ frames: Int, _ count: Int, _ ports: inout Ports) {
    let milliseconds = Double(frames) * 1_000 / Double(rate)
    ports.post(event.rawValue) { fields in
      fields.field("ms", milliseconds, decimals: 1)
      fields.field("count", count)
    }
  }

  /// Tells what became of the device.
  mutating func tellNews(_ line: PlaybackLine, _ ports: inout Ports) {
    while let news = line.news() {
      switch news {
      case .lost:
        losses += 1
        let count = losses
        ports.post(Event.deviceLost.rawValue) { $0.field("count", count) }
      case .back(let away):
        ports.post(Event.deviceBack.rawValue) { $0.field("ms", Double(away) / 1e6, decimals: 1) }
      }
    }
    let missed = line.takeMissed()
    if missed > 0 { tellLate(missed, &ports) }
  }

  mutating func tellClock(_ ports: inout Ports) {
    guard ports.now >= nextClock, let clock = pace.clock else { return }
    nextClock = ports.now &+ Self.clockInterval
    let (skew, drift) = (clock.skew(rate: rate), pace.control.drift)
    let age = playout.isSilent ? nil : pace.age(of: playout.time(rate: rate)) / 1e6
    ports.post(Event.deviceClock.rawValue) { event in
      event.field("ppm", skew, decimals: 1)
      event.field("drift", drift, decimals: 1)
      if let age { event.field("age", age, decimals: 2) }
    }
  }
}
