internal import CALSA
internal import CMillraceSys
internal import MillraceCore

/// An ALSA PCM: a thread opens it, moves audio until it fails, and reopens it with exponential backoff.
final class ALSADevice: AudioDevice, @unchecked Sendable {
  /// The direction of the audio.
  enum Role {
    case capture(CaptureLine, CaptureFormat)
    case playback(PlaybackLine)
  }

  /// Longest wait for the first open. A device that ran at least this long resets the backoff. Nanoseconds.
  private static let timeout: Nanoseconds = 3_000_000_000
  /// First and longest backoff before it is reopened, in nanoseconds.
  private static let firstPause: Nanoseconds = 100_000_000
  private static let longestPause: Nanoseconds = 2_000_000_000

  private let settings: DeviceSettings
  private let role: Role
  private let thread = DeviceThread()
  private let opening = Promise<NodeProblem?>()
  /// How often it was opened. Used by the device's thread only.
  private var openings = 0

  init(_ settings: DeviceSettings, _ role: Role) {
    self.settings = settings
    self.role = role
  }

  // MARK: Life

  func start() throws(NodeProblem) {
    try thread.start(isCapture ? "millrace-mic" : "millrace-speaker") { [self] in run() }
    guard let answer = opening.wait(Self.timeout) else {
      thread.askToEnd()
      throw NodeProblem("timed out while opening the device", parameter: "device")
    }
    if let answer { throw answer }
  }

  func stop() { thread.stop() }

  private var isCapture: Bool { if case .capture = role { true } else { false } }

  // MARK: The thread

  /// True once the device has been asked to stop.
  var isOver: Bool { thread.isOver }

  private func run() {
    var pause = Self.firstPause
    while !isOver {
      let began = millrace_monotonic_ns()
      let problem = runOnce()
      guard openings > 0 else { return opening.fulfill(problem) }
      if isOver { return }
      reportLoss()
      if millrace_monotonic_ns() - began > Self.timeout { pause = Self.firstPause }
      thread.pause(pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }

  /// Opens the device and moves audio until it fails or is asked to stop. Returns the error if it could not be opened.
  private func runOnce() -> NodeProblem? {
    let (rate, channels, format): (Int, Int, snd_pcm_format_t) =
      switch role {
      case .capture(_, let shape):
        (
          shape.rate, shape.channels,
          shape.sample == .s16 ? SND_PCM_FORMAT_S16_LE : SND_PCM_FORMAT_FLOAT_LE
        )
      case .playback(let line): (line.rate, line.channels, SND_PCM_FORMAT_FLOAT_LE)
      }
    let port: ALSAPort
    do throws(ALSAPort.Refusal) {
      port = try ALSAPort(
        settings.name.name, isCapture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK, rate: rate,
        channels: channels, format: format, period: Int(settings.interval) * rate / 1_000_000_000)
    } catch {
      return ALSAPort.problem(error, settings.name.name)
    }
    openings += 1
    opening.fulfill(nil)
    switch role {
    case .capture(let line, let shape): record(port, line, shape)
    case .playback(let line): play(port, line, epoch: openings)
    }
    return nil
  }

  private func reportLoss() {
    let now = millrace_monotonic_ns()
    switch role {
    case .capture(let line, _): line.lose(at: now)
    case .playback(let line): line.lose(at: now)
    }
  }
}
