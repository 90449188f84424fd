public import MillraceCore
internal import MillraceDSP

extension AudioVAD {
  public static let contract = NodeContract(
    "audio.vad", "tells when somebody speaks, and lets the sound pass",
    text: """
      The engine `silero` is a small neural network, whose weights `make models` gets once; `energy` takes for speech what \
      is louder than the floor. Thresholds of 0.35 and 0.2 suit a far microphone better than those given. With `gate` only \
      speech passes, from `preRoll` before its first sample on.
      """,
    inputs: [PortContract("in", SoundBounds.pcm, text: "sound to listen to")],
    outputs: [
      PortContract(
        "out", SoundBounds.pcm, text: "the same packets; with `gate` those around speech", required: false)
    ],
    parameters: [
      ParameterContract(
        "engine", .choice(["silero", "energy"]), default: "silero",
        text: "silero: the network; energy: loudness alone, without a model"),
      ParameterContract(
        "model", .path, text: "file of weights; absent: the one make models writes"),
      ParameterContract(
        "start", .number(0.01...0.99), default: 0.5, live: true,
        text: "probability from which speech may begin"),
      ParameterContract(
        "stop", .number(0.01...0.99), default: 0.3, live: true,
        text: "probability below which speech may end; above `start` it counts as `start`"),
      ParameterContract(
        "minSpeech", .number(0...mostLiveSpeech), unit: "ms", default: 64, live: true,
        text: "shorter speech is none; what it is told later by"),
      ParameterContract(
        "minSilence", .number(0...10_000), unit: "ms", default: 500, live: true,
        text: "a shorter pause is none; what an end is told later by"),
      ParameterContract("gate", .bool, default: false, text: "true: only speech passes"),
      ParameterContract(
        "preRoll", .number(0...2_000), unit: "ms", default: 300, text: "sound a gate lets pass before speech"),
      ParameterContract(
        "report", .number(0...60_000), unit: "ms", default: 0,
        text: "sound one `probability` event stands for; 0: none are posted"),
    ],
    events: [
      EventContract(
        "speechStarted",
        text: "somebody speaks: `position` of the first sample, `delay` in ms from there to knowing it"),
      EventContract(
        "speechEnded",
        text: """
          they have stopped: `position` after the last sample, `from` the first, `ms` between them, `delay` in ms from the \
          end to knowing it
          """),
      EventContract(
        "maybeEnd",
        text:
          "they may have stopped, or paused between two words: `position` at which the level had been low for 40 ms"
      ),
      EventContract(
        "probability",
        text:
          "`probability`, the highest since the last one, up to `position`; `speech` whether somebody is speaking"
      ),
    ],
    budget: 300,
    examples: [
      #"{ "type": "audio.vad" }"#,
      #"{ "type": "audio.vad", "start": 0.35, "stop": 0.2, "gate": true, "preRoll": 400 }"#,
      #"{ "type": "audio.vad", "engine": "energy", "minSilence": 800 }"#,
    ],
    resolve: resolve)

  /// Most milliseconds of speech that may be asked for before it is told.
  static let mostLiveSpeech = 1_000.0

  /// Microseconds a step of the network may take.
  private static let stepBudget = 200

  private static func resolve(_ resolution: inout Resolution) {
    guard let shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate else {
      return
    }
    resolution.passThrough()
    if resolution.parameters.bool("gate") {
      resolution.outputs["out"]?.burst = SpeechGate.burst
    }
    let steps = SpeechListener.steps(in: frames, rate: rate)
    resolution.budget = 100 + stepBudget * steps
    // Of each step a change or a hint, and a probability; one change more where the stream breaks.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: EventWriter.eventBytes, burst: 2 * steps + 1)
    guard let path = modelPath(resolution.parameters) else { return }
    do throws(NodeProblem) { try VoiceModel.check(path) } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
  }

  /// The file of weights; nil when the engine needs none.
  static func modelPath(_ values: ParameterValues) -> String? {
    guard values.string("engine") == "silero" else { return nil }
    return values.has("model") ? values.string("model") : VoiceModel.standardPath
  }

  static func samples(_ milliseconds: Double, _ rate: Int) -> Int64 {
    Int64((milliseconds * Double(rate) / 1_000).rounded())
  }

  static func settings(_ values: ParameterValues, rate: Int) -> SpeechSegmenter.Settings {
    SpeechSegmenter.Settings(
      start: Float(values.number("start")), stop: Float(values.number("stop")),
      minimumSpeech: samples(values.number("minSpeech"), rate),
      minimumSilence: samples(values.number("minSilence"), rate))
  }

  /// Order of the live parameters in the contract.
  private enum Index {
    static let start = 2
    static let stop = 3
    static let minSpeech = 4
    static let minSilence = 5
  }

  /// Gives a live parameter, by its index, another value.
  static func change(
    _ settings: inout SpeechSegmenter.Settings, _ parameter: Int, to value: Double, rate: Int
  ) {
    switch parameter {
    case Index.start: settings.start = Float(value)
    case Index.stop: settings.stop = Float(value)
    case Index.minSpeech: settings.minimumSpeech = samples(value, rate)
    case Index.minSilence: settings.minimumSilence = samples(value, rate)
    default: break
    }
  }
}
