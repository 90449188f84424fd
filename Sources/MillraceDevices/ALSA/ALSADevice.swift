internal import CALSA
internal import CMillraceSys
internal import MillraceCore

/// A PCM of ALSA: a thread that opens it, moves sound until it fails, and opens it anew with growing pauses.
final class ALSADevice: AudioDevice, @unchecked Sendable {
  /// Which way the sound goes.
  enum Role {
    case capture(CaptureLine, CaptureShape)
    case playback(PlaybackLine)
  }

  /// Longest wait for the first opening; and how long a device has to hold to deserve a quick try. Nanoseconds.
  private static let patience: Nanoseconds = 3_000_000_000
  /// The first pause before it is opened again, and the longest. Nanoseconds.
  private static let firstPause: Nanoseconds = 100_000_000
  private static let longestPause: Nanoseconds = 2_000_000_000

  private let terms: DeviceTerms
  private let role: Role
  private let thread = DeviceThread()
  private let opening = Answer<NodeProblem?>()
  /// Times it was opened. Of the thread.
  private var openings = 0

  init(_ terms: DeviceTerms, _ role: Role) {
    self.terms = terms
    self.role = role
  }

  // MARK: Life

  func start() throws(NodeProblem) {
    try thread.start(isCapture ? "millrace-mic" : "millrace-speaker") { [self] in run() }
    guard let answer = opening.wait(Self.patience) else {
      thread.askToEnd()
      throw NodeProblem("the device does not answer", parameter: "device")
    }
    if let answer { throw answer }
  }

  func stop() { thread.stop() }

  private var isCapture: Bool { if case .capture = role { true } else { false } }

  // MARK: The thread

  /// True once the device is to end.
  var isOver: Bool { thread.isOver }

  private func run() {
    var pause = Self.firstPause
    while !isOver {
      let began = millrace_monotonic_ns()
      let problem = session()
      guard openings > 0 else { return opening.give(problem) }
      if isOver { return }
      lose()
      if millrace_monotonic_ns() - began > Self.patience { pause = Self.firstPause }
      thread.pause(pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }

  /// Opens the device and moves sound until it fails or is to end; answers why it could not be opened.
  private func session() -> NodeProblem? {
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
        terms.name.name, isCapture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK, rate: rate,
        channels: channels, format: format, period: Int(terms.interval) * rate / 1_000_000_000)
    } catch {
      return ALSAPort.problem(error, terms.name.name)
    }
    openings += 1
    opening.give(nil)
    switch role {
    case .capture(let line, let shape): record(port, line, shape)
    case .playback(let line): play(port, line, epoch: openings)
    }
    return nil
  }

  private func lose() {
    let now = millrace_monotonic_ns()
    switch role {
    case .capture(let line, _): line.lose(at: now)
    case .playback(let line): line.lose(at: now)
    }
  }
}
