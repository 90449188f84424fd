internal import CALSA
internal import MillraceCore

/// An open ALSA PCM: what capture and playback have in common. Confined to one thread.
@safe
struct ALSAPort: ~Copyable {
  /// Why a PCM could not be opened.
  struct Refusal: Error {
    var step: String
    var code: Int32
  }

  let pcm: OpaquePointer
  /// Frames per period.
  let period: Int
  private static let periods: UInt = 4

  /// Opens and configures a PCM: interleaved, four periods of about `period` frames.
  init(
    _ name: String, _ stream: snd_pcm_stream_t, rate: Int, channels: Int, format: snd_pcm_format_t,
    period: Int
  ) throws(Refusal) {
    millrace_alsa_silence()
    var handle: OpaquePointer?
    try Self.check("open", unsafe snd_pcm_open(&handle, name.isEmpty ? "default" : name, stream, 0))
    guard let pcm = unsafe handle else { throw Refusal(step: "open", code: -ENODEV) }
    do throws(Refusal) {
      self.period = try unsafe Self.set(
        pcm, stream, rate: rate, channels: channels, format: format, period: period)
    } catch {
      _ = unsafe snd_pcm_close(pcm)
      throw error
    }
    unsafe self.pcm = unsafe pcm
  }

  deinit { _ = unsafe snd_pcm_close(pcm) }

  private static func check(_ step: String, _ code: Int32) throws(Refusal) {
    if code < 0 { throw Refusal(step: step, code: code) }
  }

  private static func set(
    _ pcm: OpaquePointer, _ stream: snd_pcm_stream_t, rate: Int, channels: Int, format: snd_pcm_format_t,
    period: Int
  ) throws(Refusal) -> Int {
    var hardware: OpaquePointer?
    try check("hw_params", unsafe snd_pcm_hw_params_malloc(&hardware))
    defer { unsafe snd_pcm_hw_params_free(hardware) }
    try check("hw_params", unsafe snd_pcm_hw_params_any(pcm, hardware))
    try check("access", unsafe snd_pcm_hw_params_set_access(pcm, hardware, SND_PCM_ACCESS_RW_INTERLEAVED))
    try check("format", unsafe snd_pcm_hw_params_set_format(pcm, hardware, format))
    try check("channels", unsafe snd_pcm_hw_params_set_channels(pcm, hardware, UInt32(channels)))
    try check("rate", unsafe snd_pcm_hw_params_set_rate(pcm, hardware, UInt32(rate), 0))
    var size = snd_pcm_uframes_t(period)
    var buffer = snd_pcm_uframes_t(period) * periods
    try check("period", unsafe snd_pcm_hw_params_set_period_size_near(pcm, hardware, &size, nil))
    try check("buffer", unsafe snd_pcm_hw_params_set_buffer_size_near(pcm, hardware, &buffer))
    try check("hw_params", unsafe snd_pcm_hw_params(pcm, hardware))
    var software: OpaquePointer?
    try check("sw_params", unsafe snd_pcm_sw_params_malloc(&software))
    defer { unsafe snd_pcm_sw_params_free(software) }
    try check("sw_params", unsafe snd_pcm_sw_params_current(pcm, software))
    let start = stream == SND_PCM_STREAM_PLAYBACK ? size * 2 : 1
    try check("start", unsafe snd_pcm_sw_params_set_start_threshold(pcm, software, start))
    try check("avail", unsafe snd_pcm_sw_params_set_avail_min(pcm, software, size))
    try check("sw_params", unsafe snd_pcm_sw_params(pcm, software))
    return Int(size)
  }

  /// The error to report when the device cannot be opened.
  static func problem(_ refusal: Refusal, _ name: String) -> NodeProblem {
    let reason = unsafe String(cString: snd_strerror(refusal.code))
    let names = AudioDeviceList.alsa().map { "\"\($0.device)\"" }
    return NodeProblem(
      "cannot open ALSA device \"\(name.isEmpty ? "default" : name)\" (\(refusal.step)): \(reason)",
      parameter: "device",
      cure: names.isEmpty
        ? "run \"millrace devices\" for a list; without audio hardware set \"device\" to file or null"
        : "use one of \(names.joined(separator: ", ")), or file or null")
  }
}
