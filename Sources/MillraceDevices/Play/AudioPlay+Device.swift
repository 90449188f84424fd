internal import CMillraceSys
internal import MillraceCore
internal import MillraceDSP

/// Playing to a device with a clock of its own.
extension AudioPlay {
  /// One step of what the pace says. As `process`; or as `finish`, until the last sample is heard.
  mutating func follow(_ route: DeviceRoute, _ ports: inout Ports, isFinishing: Bool) throws(NodeFault)
    -> Outcome
  {
    let offset = begin(route, &ports)
    if let line = route.line { tellNews(line, &ports) }
    takeIn(&ports)
    let runs = pace.follow(route.reading(start: start ?? ports.now), offset: offset)
    if !runs || isBroken { given.close() }
    if try handOn(&ports) { return .again }
    // A device that is away plays nothing to its end.
    guard runs else { return isFinishing ? .ended : .done }
    tellClock(&ports)
    if isFinishing && playout.isSilent && intake.count == 0 && !ports.hasPacket() && ports.now >= heardUntil {
      return end(&ports)
    }
    switch pace.step(
      now: ports.now, isSilent: playout.isSilent, ready: ready(&ports, isFinishing: isFinishing))
    {
    case .wait(let time):
      if let time { ports.wake(at: time) }
      return isFinishing ? .again : .done
    case .silence(let frames): giveSilence(frames, route)
    case .begin:
      beginSound(route)
      givePeriod(route, &ports, isBeginning: true)
    case .sound: givePeriod(route, &ports)
    case .late(let frames):
      // All that was given is past, and told before what is left out.
      if given.count > 0 { given.close() } else { skip(frames, &ports) }
    }
    return .again
  }

  /// A device that was away, another one, or another line of its clock: what was given before is final, and the time between has its place
  /// in the stream.
  private var isBroken: Bool {
    guard pace.isAnchored, let expected = nextHeard else { return true }
    return pace.heard(pace.position) &- expected > Self.longestSlip
  }

  /// The first call: what came before the graph began would be late for ever, unless it waited for just that.
  private mutating func begin(_ route: DeviceRoute, _ ports: inout Ports) -> Nanoseconds {
    if let offset { return offset }
    let offset = route.line == nil ? 0 : millrace_monotonic_ns() &- ports.now
    self.offset = offset
    start = ports.now
    nextClock = ports.now &+ Self.clockInterval
    return offset
  }

  /// Takes packets out of the link as they arrive, a few at most. A reply that is held waits in its link.
  mutating func takeIn(_ ports: inout Ports) {
    let wasEmpty = intake.count == 0
    var taken = 0
    while intake.hasRoom, !playout.isHeld, let packet = ports.next() {
      let timestamp = packet.timestamp
      // Of several that came together only the last came now, if any did.
      if wasEmpty && taken == 0 && !ports.hasPacket() { pace.noteArrival(timestamp, at: ports.now) }
      intake.push(packet, at: ports.now)
      taken += 1
    }
    intake.dropVoid(at: ports.generation)
    guard taken > 1, playout.isSilent, pace.delay == nil, let newest = intake.newest, newest <= ports.now
    else {
      return
    }
    // Live sound that piled up before anything was known of its arrival: the next packet will tell.
    if let head = intake.head, head.reply.generation == 0, !head.reply.isUninterruptible { intake.clear() }
  }

  /// When the sound that waits may begin.
  private mutating func ready(_ ports: inout Ports, isFinishing: Bool) -> Nanoseconds? {
    guard playout.isSilent, !playout.isHeld, let head = intake.head else { return nil }
    if isFinishing || !intake.hasRoom { return ports.now }
    return head.arrival &+ prebuffer
  }

  private mutating func beginSound(_ route: DeviceRoute) {
    guard let head = intake.head else { return }
    route.begin()
    owed = pace.begin(
      head.timestamp &- lag(route), isWhole: isWhole(head))
    while owed > 0, intake.count > 1, let head = intake.head {
      let frames = head.bytes / (channels * sample.byteCount)
      guard owed >= frames else { break }
      owed -= frames
      playout.passOver(frames)
      _ = intake.pop()
    }
  }

  /// How far what is given is behind what was taken.
  private func lag(_ route: DeviceRoute) -> Nanoseconds {
    Nanoseconds((route.waiting * 1e9 / Double(rate)).rounded())
  }

  /// Nothing of a reply may be left out, nor of sound that comes before its time: its source waits for us.
  private func isWhole(_ head: Intake.Head) -> Bool {
    head.reply.generation != 0 || head.reply.isUninterruptible
  }

  // MARK: Giving

  private mutating func skip(_ frames: Int, _ ports: inout Ports) {
    pace.advance(frames)
    position += Int64(frames)
    hasSkipped = true
    nextHeard = nil
    guard !playout.isSilent else { return }
    tellLate(frames, &ports)
    playout.rise()
    // What was not heard in time is not to be heard later, or all that follows would be.
    if !playout.isReply && pace.delay != nil { owed += frames - playout.skip(frames) }
  }

  private mutating func giveSilence(_ frames: Int, _ route: DeviceRoute) {
    unsafe route.output.update(repeating: 0, count: frames * channels)
    advance(frames, route)
  }

  /// Gives the device one period of sound.
  private mutating func givePeriod(
    _ route: DeviceRoute, _ ports: inout Ports, isBeginning: Bool = false
  ) {
    var ratio = 1 / (1 + pace.control.correction)
    if route.resampler != nil, !isBeginning {
      let next = playout.time(rate: rate) &- lag(route)
      if let correction = pace.correction(next, isWhole: playout.isReply) {
        ratio = 1 / (1 + correction)
      } else {
        tellJump(max(0, Int((pace.age(of: next) - (pace.target ?? 0)) * Double(rate) / 1e9)), &ports)
        playout.leave()
      }
    }
    let frames = framesToGive(route, ratio: ratio)
    let before = playout.account
    if let resampler = route.resampler {
      render(frames, route, through: resampler, ratio: ratio, &ports)
    } else {
      stage(frames, route, &ports)
      unsafe route.output.update(from: route.staged, count: frames * channels)
      route.stagedFrames = 0
    }
    let sounds = !playout.isSilent || playout.account != before
    if sounds {
      send(frames, route)
      heardUntil = pace.heard(pace.position + Int64(frames))
    }
    advance(frames, route)
  }

  /// A period; or less, where it would need frames of a packet that is not due yet: as clocks drift, and after a stall, the ends
  /// of periods lie anywhere in packets. The period after it begins with that packet.
  private func framesToGive(_ route: DeviceRoute, ratio: Double) -> Int {
    let waiting = intake.bytes / (channels * sample.byteCount) - owed
    // What the resampler needs beyond the last frame it gives stays inside.
    let inside = route.resampler == nil ? 0 : route.waiting - Double(AdaptiveResampler.latency)
    let available = inside + Double(playout.framesLeft + waiting)
    let possible = Int(available * ratio) - (route.resampler == nil ? 0 : 1)
    return possible < period && possible >= shortestPeriod ? possible : period
  }

  /// A millisecond: with less than that at hand the sound is at its end.
  private var shortestPeriod: Int { rate / 1_000 }

  /// Notes that the device was given what is in the output.
  private mutating func advance(_ frames: Int, _ route: DeviceRoute) {
    let heard = pace.heard(pace.position)
    if let expected = nextHeard, heard &- expected > Self.longestSlip {
      position += (heard &- expected) * Int64(rate) / 1_000_000_000
      hasSkipped = true
    }
    let end = pace.heard(pace.position + Int64(frames))
    nextHeard = end
    let space = unsafe given.space
    unsafe space.update(from: route.output, count: frames * channels)
    given.append(
      frames, position: position, until: end, frameTime: 1 / (pace.clock?.rate ?? Double(rate) / 1e9))
    pace.advance(frames)
    position += Int64(frames)
  }

  /// Fills the output from the resampler.
  private mutating func render(
    _ frames: Int, _ route: DeviceRoute, through resampler: AdaptiveResampler, ratio: Double,
    _ ports: inout Ports
  ) {
    var made = 0
    while made < frames {
      if route.stagedFrames == 0 {
        let wanted =
          Double(frames - made) / ratio + Double(AdaptiveResampler.latency) - resampler.held
        stage(max(1, min(Int(wanted.rounded(.up)), route.stageFrames)), route, &ports)
      }
      let step = unsafe resampler.process(
        route.staged, frames: route.stagedFrames, into: route.output + made * channels, room: frames - made,
        ratio: ratio)
      made += step.made
      route.stagedFrames -= step.taken
      if route.stagedFrames > 0 && step.taken > 0 {
        unsafe route.staged.update(
          from: route.staged + step.taken * channels, count: route.stagedFrames * channels)
      }
      // It neither takes nor gives: rather silence than a call that never ends.
      guard step.taken > 0 || step.made > 0 else {
        unsafe (route.output + made * channels).update(repeating: 0, count: (frames - made) * channels)
        return
      }
    }
  }

  /// Puts so many frames of the playout into the staging memory, as floats.
  private mutating func stage(_ frames: Int, _ route: DeviceRoute, _ ports: inout Ports) {
    var floats = unsafe MutableSpan(_unsafeStart: route.staged, count: frames * channels)
    switch sample {
    case .f32: fill(&floats, at: position, &ports)
    case .s16:
      var shorts = unsafe MutableSpan(_unsafeStart: route.stagedShorts, count: frames * channels)
      fill(&shorts, at: position, &ports)
      SampleConversion.convert(shorts.span, into: &floats)
    }
    route.stagedFrames = frames
  }

  private func send(_ frames: Int, _ route: DeviceRoute) {
    guard let line = route.line, line.hasRoom, let clock = pace.clock else { return }
    unsafe line.space.update(from: route.output, count: frames * channels)
    line.publish(PlaybackLine.Block(epoch: clock.epoch, position: pace.position, frames: frames))
  }

  /// A reference that is later than this is no longer a clock that is being found. Nanoseconds.
  private static let longestSlip: Nanoseconds = 50_000_000
}
