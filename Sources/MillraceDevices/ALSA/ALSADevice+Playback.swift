internal import CALSA
internal import CMillraceSys
internal import MillraceCore
internal import MillraceDSP

extension ALSADevice {
  /// Periods that only fill the device's buffer: they are accepted at once, so they say nothing about its clock.
  private static let filling = 8

  /// Keeps the device fed from the line's timeline, silence included, until it fails or is asked to stop.
  func play(_ port: borrowing ALSAPort, _ line: PlaybackLine, epoch: Int) {
    var reader = TimelineReader(line, epoch: epoch)
    var loop = TimestampLoop(rate: line.rate)
    let samples = UnsafeMutablePointer<Float>.allocate(capacity: port.period * line.channels)
    defer { unsafe samples.deallocate() }
    var rounds = 0
    while !isOver {
      unsafe reader.read(port.period, into: samples)
      let count = unsafe snd_pcm_writei(port.pcm, samples, snd_pcm_uframes_t(port.period))
      if count < 0 {
        guard unsafe snd_pcm_recover(port.pcm, Int32(count), 1) >= 0 else { return }
        loop.restart()
        continue
      }
      let now = millrace_monotonic_ns()
      // The next write is accepted at once; the library then blocks until there is room.
      let position = reader.position + Int64(port.period)
      loop.update(position: position, at: now)
      rounds += 1
      guard rounds > Self.filling else { continue }
      if rounds == Self.filling + 1 { loop.restart() }
      guard rounds > Self.filling + 1 else { continue }
      var delay: snd_pcm_sframes_t = 0
      let isKnown = unsafe snd_pcm_delay(port.pcm, &delay) >= 0
      line.publish(
        DeviceClock(
          epoch: epoch, position: Double(position), time: loop.time(of: Double(position)),
          rate: loop.rate / 1e9,
          delay: .samples(isKnown ? max(0, Int64(delay)) : 0, rate: line.rate)),
        isFirst: rounds == Self.filling + 2, at: now)
    }
  }
}
