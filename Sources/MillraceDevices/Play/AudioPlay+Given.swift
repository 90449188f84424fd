internal import MillraceCore
internal import MillraceDSP

/// What was given to the device and is not heard yet: the reference waits until it is final, and a reply that is void is called back.
extension AudioPlay {
  /// Frames the device is ahead of what it plays at a time; nil while that is not known.
  private func ahead(at now: Nanoseconds) -> Double? {
    guard route != nil else {
      guard let start else { return nil }
      return Double(position) - Double(now &- start &- latency) * Double(rate) / 1e9
    }
    guard let clock = pace.clock, pace.isAnchored else { return nil }
    return Double(pace.position) - clock.position(at: now)
  }

  // MARK: Reference

  /// Frames of the reference that are final and go out as one packet; nil: none. What the device plays within the next period is final:
  /// an echo is then known a period before it can have been recorded.
  private func finalFrames(at now: Nanoseconds) -> Int? {
    if given.isOver { return min(period, given.count) }
    guard given.count >= period else { return nil }
    guard !given.isFull, let ahead = ahead(at: now) else { return period }
    let end = ahead - Double(given.count - period)
    return end <= Double(max(period, reaction)) + LinePace.grain ? period : nil
  }

  /// Hands the reference on as far as it is final. True when there was no room for all of that.
  mutating func handOn(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let isLinked = ports.isLinked(output: 0)
    while let frames = finalFrames(at: ports.now) {
      if isLinked {
        guard ports.hasRoom() else { return true }
        try emit(frames, &ports)
      }
      given.drop(frames)
    }
    return false
  }

  private mutating func emit(_ frames: Int, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: frames * channels * sample.byteCount, of: .none)
    packet.timestamp = given.time
    packet.position = given.position
    packet.duration = frames
    if hasSkipped { packet.flags.insert(.discontinuity) }
    hasSkipped = false
    let source = unsafe Span(_unsafeElements: given.first(frames))
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

  // MARK: Calling back

  /// Fades what the device was given of a void reply and has not begun with, and takes the rest back; answers how much of the reply is
  /// heard then. nil: less than a fade is left of it, so that the fade has to come behind it.
  mutating func callBack(at now: Nanoseconds) -> Playout.Account? {
    guard let ahead = ahead(at: now) else { return nil }
    let inside = route?.waiting ?? 0
    // What the reference told stays as it was told, and so does what the device may be taking this very moment.
    let frames = min(
      given.count, Int(ahead) - reaction, Int(Double(playout.framesOfReply) - inside))
    guard frames >= fade, route?.line?.hasRoom ?? true else { return nil }
    let faded = unsafe given.fade(last: frames, over: fade)
    if let line = route?.line, let clock = pace.clock {
      unsafe line.space.update(from: faded, count: fade * channels)
      line.publish(
        PlaybackLine.Block(
          epoch: clock.epoch, position: pace.position - Int64(frames), frames: fade, silence: frames - fade,
          replaces: true))
    }
    let taken = Double(frames - fade) * (1 + pace.control.correction) + inside
    return playout.endCut(without: Int(taken.rounded()))
  }
}
