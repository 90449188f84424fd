internal import MillraceCore
internal import MillraceDSP

/// The canceller selected for a node. Blocks of 8 ms for either.
@safe
struct EchoEngine: ~Copyable {
  /// Output latency in frames.
  let latencyFrames: Int
  /// State after the newest block. libspeexdsp reports no delay.
  private(set) var state = EchoState()

  private var own: EchoCanceller?
  private var speex: SpeexEcho?

  /// Mean square from which the far end counts as audible: -50 dBFS.
  private static let audible: Float = 1e-5

  init(isSpeex: Bool, _ settings: EchoSettings) throws(NodeProblem) {
    guard isSpeex else {
      own = EchoCanceller(settings)
      speex = nil
      latencyFrames = EchoCanceller.latencyFrames(rate: settings.rate)
      return
    }
    let block = EchoCanceller.blockFrames(rate: settings.rate)
    speex = try SpeexEcho(rate: settings.rate, frames: block, tail: settings.tailMilliseconds)
    own = nil
    latencyFrames = block
  }

  /// Processes one block.
  mutating func process(
    near: Span<Float>, far: Span<Float>, controls: EchoControls, into output: inout MutableSpan<Float>
  ) {
    if speex == nil {
      own?.process(near: near, far: far, controls: controls, into: &output)
      state = own?.state ?? EchoState()
    } else {
      speex?.process(near: near, far: far, into: &output, suppresses: controls.suppresses)
      measure(near, far, output.span)
    }
  }

  private mutating func measure(_ near: Span<Float>, _ far: Span<Float>, _ output: Span<Float>) {
    let farEnergy = Float(SampleMath.energy(far).squares)
    state.farIsActive = farEnergy > Self.audible * Float(far.count)
    state.nearEnergy = Float(SampleMath.energy(near).squares)
    state.outputEnergy = Float(SampleMath.energy(output).squares)
  }
}
