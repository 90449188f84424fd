internal import MillraceCore
internal import MillraceDSP

/// Audio queued on the device but not heard yet: emitting the reference once it is final, and rewinding a cancelled reply.
extension AudioPlay {
  /// How far ahead of playback audio is queued at `now`, in frames; nil while that is unknown.
  private func ahead(at now: Nanoseconds) -> Double? {
    guard route != nil else {
      guard let start else { return nil }
      return Double(position) - Double(now &- start &- latency) * Double(rate) / 1e9
    }
    guard let clock = schedule.clock, schedule.isAnchored else { return nil }
    return Double(schedule.position) - clock.position(at: now)
  }

  // MARK: Reference

  /// Frames of the reference to emit as one packet; nil if none is final. Audio is final one period before it is played, so an echo
  /// canceller has the reference a period before its echo can be recorded.
  private func finalFrames(at now: Nanoseconds) -> Int? {
    if queued.isOver { return min(period, queued.count) }
    guard queued.count >= period else { return nil }
    guard !queued.isFull, let ahead = ahead(at: now) else { return period }
    let end = ahead - Double(queued.count - period)
    return end <= Double(max(period, reaction)) + PlayoutSchedule.grain ? period : nil
  }

  /// Emits the reference as far as it is final. True if the link had no room for all of it.
  mutating func emitReference(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let isLinked = ports.isLinked(output: 0)
    while let frames = finalFrames(at: ports.now) {
      if isLinked {
        guard ports.hasRoom() else { return true }
        try emit(frames, &ports)
      }
      queued.drop(frames)
    }
    return false
  }

  private mutating func emit(_ frames: Int, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: frames * channels * sample.byteCount, of: .none)
    packet.timestamp = queued.time
    packet.position = queued.position
    packet.duration = frames
    if hasSkipped { packet.flags.insert(.discontinuity) }
    hasSkipped = false
    let source = unsafe Span(_unsafeElements: queued.first(frames))
    switch sample {
    case .s16:
      var target = packet.mutableSamples(of: Int16.self)
      SampleConversion.convert(source, into: &target)
    case .f32:
      var target = packet.mutableSamples(of: Float.self)
      for index in target.indices { target[index] = source[index] }
    }
    ports.emit(packet)
  }

  // MARK: Rewinding

  /// Rewinds queued audio of a cancelled reply that has not started playing: fades it out and silences the rest. Returns how much of the
  /// reply is heard. nil if less than a fade is left in the queue, so that the fade has to follow it.
  mutating func rewind(at now: Nanoseconds) -> Playout.Account? {
    guard let ahead = ahead(at: now) else { return nil }
    let inside = route?.waiting ?? 0
    // Leave alone what the reference has already reported and what the device may be fetching right now.
    let frames = min(
      queued.count, Int(ahead) - reaction, Int(Double(playout.framesOfReply) - inside))
    guard frames >= fade, route?.line?.hasRoom ?? true else { return nil }
    let faded = unsafe queued.fade(last: frames, over: fade)
    if let line = route?.line, let clock = schedule.clock {
      unsafe line.space.update(from: faded, count: fade * channels)
      line.publish(
        PlaybackLine.Block(
          epoch: clock.epoch, position: schedule.position - Int64(frames), frames: fade,
          silence: frames - fade,
          replaces: true))
    }
    let taken = Double(frames - fade) * (1 + schedule.control.correction) + inside
    return playout.endCut(without: Int(taken.rounded()))
  }
}
