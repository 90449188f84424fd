internal import CALSA
internal import CMillraceSys
internal import MillraceCore
internal import MillraceDSP
internal import Synchronization

/// A playing PCM of ALSA: a thread that keeps it filled out of the line's time line, silence included.
final class ALSAPlayback: AudioDevice {
  private let terms: DeviceTerms
  private let line: PlaybackLine
  private let thread = ALSAThread()
  private let epochs = Atomic<Int>(0)

  init(_ terms: DeviceTerms, _ line: PlaybackLine) {
    self.terms = terms
    self.line = line
  }

  func start() throws(NodeProblem) {
    try thread.start(
      "millrace-speaker", session: { [self] in session() },
      lost: { [self] in
        line.lose(at: millrace_monotonic_ns())
      })
  }

  func stop() { thread.stop() }

  /// Plays until the device fails; answers why it could not be opened.
  private func session() -> NodeProblem? {
    let port: ALSAPort
    do throws(ALSAPort.Refusal) {
      port = try ALSAPort(
        terms.name.name, SND_PCM_STREAM_PLAYBACK, rate: line.rate, channels: line.channels,
        format: SND_PCM_FORMAT_FLOAT_LE, period: Int(terms.interval) * line.rate / 1_000_000_000)
    } catch {
      return ALSAPort.problem(error, terms.name.name)
    }
    thread.noteOpen()
    let epoch = epochs.add(1, ordering: .relaxed).newValue
    var reader = TimelineReader(line, epoch: epoch)
    var loop = TimestampLoop(rate: line.rate)
    let samples = UnsafeMutablePointer<Float>.allocate(capacity: port.period * line.channels)
    defer { unsafe samples.deallocate() }
    var rounds = 0
    while !thread.isOver {
      unsafe reader.read(port.period, into: samples)
      let count = unsafe snd_pcm_writei(port.pcm, samples, snd_pcm_uframes_t(port.period))
      if count < 0 {
        guard unsafe snd_pcm_recover(port.pcm, Int32(count), 1) >= 0 else { break }
        loop.restart()
        continue
      }
      let now = millrace_monotonic_ns()
      // The next period is taken at once; the library then waits for room.
      let position = reader.position + Int64(port.period)
      loop.update(position: position, at: now)
      rounds += 1
      // The first periods fill the device's buffer: they go as fast as they come.
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
    return nil
  }

  private static let filling = 8
}
