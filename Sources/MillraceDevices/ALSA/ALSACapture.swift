internal import CALSA
internal import CMillraceSys
internal import MillraceCore

/// A recording PCM of ALSA: a thread that reads period by period and hands on.
final class ALSACapture: AudioDevice {
  private let terms: DeviceTerms
  private let line: CaptureLine
  private let shape: CaptureShape
  private let thread = ALSAThread()

  init(_ terms: DeviceTerms, _ line: CaptureLine, _ shape: CaptureShape) {
    self.terms = terms
    self.line = line
    self.shape = shape
  }

  func start() throws(NodeProblem) {
    try thread.start(
      "millrace-mic", session: { [self] in session() },
      lost: { [self] in
        line.lose(at: millrace_monotonic_ns())
      })
  }

  func stop() { thread.stop() }

  /// Reads until the device fails; answers why it could not be opened.
  private func session() -> NodeProblem? {
    let port: ALSAPort
    do throws(ALSAPort.Refusal) {
      port = try ALSAPort(
        terms.name.name, SND_PCM_STREAM_CAPTURE, rate: shape.rate, channels: shape.channels,
        format: shape.sample == .s16 ? SND_PCM_FORMAT_S16_LE : SND_PCM_FORMAT_FLOAT_LE,
        period: Int(terms.interval) * shape.rate / 1_000_000_000)
    } catch {
      return ALSAPort.problem(error, terms.name.name)
    }
    thread.noteOpen()
    let bytes = UnsafeMutableRawPointer.allocate(
      byteCount: port.period * shape.channels * shape.sample.byteCount, alignment: 64)
    defer { unsafe bytes.deallocate() }
    while !thread.isOver {
      let count = unsafe snd_pcm_readi(port.pcm, bytes, snd_pcm_uframes_t(port.period))
      if count < 0 {
        guard unsafe snd_pcm_recover(port.pcm, Int32(count), 1) >= 0 else { break }
        continue
      }
      line.arrive(count, at: millrace_monotonic_ns())
      unsafe line.take(bytes, frames: count)
    }
    return nil
  }
}
