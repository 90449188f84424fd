internal import CALSA
internal import CMillraceSys
internal import MillraceCore

extension ALSADevice {
  /// Reads periods and passes them on, until the device fails or is asked to stop.
  func record(_ port: borrowing ALSAPort, _ line: CaptureLine, _ shape: CaptureFormat) {
    let bytes = UnsafeMutableRawPointer.allocate(
      byteCount: port.period * shape.channels * shape.sample.byteCount, alignment: 64)
    defer { unsafe bytes.deallocate() }
    while !isOver {
      let count = unsafe snd_pcm_readi(port.pcm, bytes, snd_pcm_uframes_t(port.period))
      if count < 0 {
        guard unsafe snd_pcm_recover(port.pcm, Int32(count), 1) >= 0 else { return }
        continue
      }
      line.arrive(count, at: millrace_monotonic_ns())
      unsafe line.take(bytes, frames: count)
    }
  }
}
