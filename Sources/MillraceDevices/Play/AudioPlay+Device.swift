internal import CMillraceSys
internal import MillraceCore
internal import MillraceDSP

/// Playback to a device that has its own clock.
extension AudioPlay {
  /// One step of the schedule. Returns what `process` returns; when finishing, what `finish` returns.
  mutating func follow(_ route: DeviceRoute, _ ports: inout Ports, isFinishing: Bool) throws(NodeFault)
    -> Outcome
  {
    let offset = begin(route, &ports)
    if change.isPending { changeDevice(&ports) }
    if let line = route.line { postDeviceEvents(line, &ports) }
    takePackets(&ports)
    let reading = route.reading(start: start ?? ports.now)
    let runs = schedule.follow(reading, offset: offset)
    if !runs || isDiscontinuous { queued.close() }
    if try emitReference(&ports) { return .again }
    guard runs || reading != .busy else {
      ports.wake(at: ports.now &+ Self.retry)
      return isFinishing ? .again : .done
    }
    guard runs else {
      if let deadline = change.deadline { ports.wake(at: deadline) }
      // A device that disappeared cannot play the rest.
      return isFinishing ? .ended : .done
    }
    postClock(&ports)
    if isFinishing && playout.isSilent && intake.count == 0 && !ports.hasPacket() && ports.now >= heardUntil {
      return end(&ports)
    }
    switch schedule.step(
      now: ports.now, isSilent: playout.isSilent, ready: ready(&ports, isFinishing: isFinishing))
    {
    case .wait(let time):
      if let time { ports.wake(at: time) }
      return isFinishing ? .again : .done
    case .silence(let frames): writeSilence(frames, route)
    case .begin:
      beginSound(route)
      writePeriod(route, &ports, isBeginning: true)
    case .sound: writePeriod(route, &ports)
    case .late(let frames):
      // All queued audio is in the past: emit its reference before the gap.
      if queued.count > 0 { queued.close() } else { skip(frames, &ports) }
    }
    return .again
  }

  /// True when the device disappeared, was replaced or its clock jumped: all queued audio is final, and the time in between is a gap in the
  /// reference.
  private var isDiscontinuous: Bool {
    guard schedule.isAnchored, let expected = nextHeard else { return true }
    return schedule.heard(schedule.position) &- expected > Self.longestSlip
  }

  /// On the first call, records the clock offset.
  private mutating func begin(_ route: DeviceRoute, _ ports: inout Ports) -> Nanoseconds {
    if let offset { return offset }
    let offset = route.line == nil ? 0 : millrace_monotonic_ns() &- ports.now
    self.offset = offset
    start = ports.now
    nextClock = ports.now &+ Self.clockInterval
    return offset
  }

  /// Takes packets from the link as they arrive, a few at most. While a reply is held, packets stay in the link.
  mutating func takePackets(_ ports: inout Ports) {
    let wasEmpty = intake.count == 0
    var taken = 0
    while intake.hasRoom, !playout.isHeld, let packet = ports.next() {
      let timestamp = packet.timestamp
      // Of several packets taken together, only the last can have arrived just now.
      if wasEmpty && taken == 0 && !ports.hasPacket() { schedule.noteArrival(timestamp, at: ports.now) }
      intake.push(packet, at: ports.now)
      taken += 1
    }
    intake.dropStale(at: ports.generation)
    guard taken > 1, playout.isSilent, schedule.delay == nil, let newest = intake.newest, newest <= ports.now
    else {
      return
    }
    // Live audio that queued up before any arrival time is known: wait for the next packet.
    if let head = intake.head, head.reply.generation == 0, !head.reply.isUninterruptible { intake.clear() }
  }

  /// When the waiting audio may start.
  private mutating func ready(_ ports: inout Ports, isFinishing: Bool) -> Nanoseconds? {
    guard playout.isSilent, !playout.isHeld, let head = intake.head else { return nil }
    if isFinishing || !intake.hasRoom { return ports.now }
    return head.arrival &+ prebuffer
  }

  private mutating func beginSound(_ route: DeviceRoute) {
    guard let head = intake.head else { return }
    route.begin()
    framesToSkip = schedule.begin(
      head.timestamp &- lag(route), mustBeComplete: mustBeComplete(head))
    while framesToSkip > 0, intake.count > 1, let head = intake.head {
      let frames = head.bytes / (channels * sample.byteCount)
      guard framesToSkip >= frames else { break }
      framesToSkip -= frames
      playout.noteSkipped(frames)
      _ = intake.pop()
    }
  }

  /// Delay between the packets and the device's block: frames inside the resampler.
  private func lag(_ route: DeviceRoute) -> Nanoseconds {
    Nanoseconds((route.waiting * 1e9 / Double(rate)).rounded())
  }

  /// A reply must be played completely, and so must audio ahead of its time: its source waits for us.
  private func mustBeComplete(_ head: ArrivalQueue.Head) -> Bool {
    head.reply.generation != 0 || head.reply.isUninterruptible
  }

  // MARK: Writing

  private mutating func skip(_ frames: Int, _ ports: inout Ports) {
    let length = schedule.heard(schedule.position + Int64(frames)) &- schedule.heard(schedule.position)
    nextHeard = nextHeard.map { $0 &+ length }
    schedule.advance(frames)
    position += Int64(frames)
    hasSkipped = true
    guard !playout.isSilent else { return }
    postLate(frames, &ports)
    playout.fadeInFromSilence()
    // Audio that missed its time is skipped; played late, it would delay all that follows.
    if !playout.isReply && schedule.delay != nil { framesToSkip += frames - playout.skip(frames) }
  }

  private mutating func writeSilence(_ frames: Int, _ route: DeviceRoute) {
    unsafe route.output.update(repeating: 0, count: frames * channels)
    advance(frames, route)
  }

  /// Writes one period of audio to the device.
  private mutating func writePeriod(
    _ route: DeviceRoute, _ ports: inout Ports, isBeginning: Bool = false
  ) {
    var ratio = 1 / (1 + schedule.control.correction)
    if route.resampler != nil, !isBeginning {
      let next = playout.time(rate: rate) &- lag(route)
      if let correction = schedule.correction(next, mustBeComplete: playout.isReply) {
        ratio = 1 / (1 + correction)
      } else {
        postJump(max(0, Int((schedule.age(of: next) - (schedule.target ?? 0)) * Double(rate) / 1e9)), &ports)
        playout.fadeOutAndDrop()
      }
    }
    let frames = framesToWrite(route, ratio: ratio)
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
      heardUntil = schedule.heard(schedule.position + Int64(frames))
    }
    advance(frames, route)
  }

  /// A period, or less if a whole one would need frames of a packet that is not due yet. With drift, and after a stall, periods may end
  /// anywhere in a packet. The next period then starts with that packet.
  private func framesToWrite(_ route: DeviceRoute, ratio: Double) -> Int {
    let waiting = intake.bytes / (channels * sample.byteCount) - framesToSkip
    // The resampler keeps its look-ahead inside.
    let inside = route.resampler == nil ? 0 : route.waiting - Double(AdaptiveResampler.latency)
    let available = inside + Double(playout.framesLeft + waiting)
    let possible = Int(available * ratio) - (route.resampler == nil ? 0 : 1)
    return possible < period && possible >= shortestPeriod ? possible : period
  }

  /// One millisecond: with less than that left, the audio has ended.
  private var shortestPeriod: Int { rate / 1_000 }

  /// Accounts for a block written to the device.
  private mutating func advance(_ frames: Int, _ route: DeviceRoute) {
    let heard = schedule.heard(schedule.position)
    if let expected = nextHeard {
      let gap = (Double(heard &- expected) * Double(rate) / 1e9).rounded()
      if heard &- expected > Self.longestSlip || (hasMoved && gap > 0) {
        position += Int64(gap)
        hasSkipped = true
      }
    }
    // The clock of another device may also be behind: times then overlap, and positions still increase.
    if hasMoved { hasSkipped = true }
    hasMoved = false
    let end = schedule.heard(schedule.position + Int64(frames))
    nextHeard = end
    let space = unsafe queued.space
    unsafe space.update(from: route.output, count: frames * channels)
    queued.append(
      frames, position: position, until: end, frameTime: 1 / (schedule.clock?.rate ?? Double(rate) / 1e9))
    schedule.advance(frames)
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
      // No progress: fill with silence instead of looping forever.
      guard step.taken > 0 || step.made > 0 else {
        unsafe (route.output + made * channels).update(repeating: 0, count: (frames - made) * channels)
        return
      }
    }
  }

  /// Renders this many frames of the playout into the staging buffer, as floats.
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
    guard let line = route.line, line.hasRoom, let clock = schedule.clock else { return }
    unsafe line.space.update(from: route.output, count: frames * channels)
    line.publish(PlaybackLine.Block(epoch: clock.epoch, position: schedule.position, frames: frames))
  }

  /// A larger jump of the reference is a gap, not clock settling. Nanoseconds.
  private static let longestSlip: Nanoseconds = 50_000_000
}
