public import MillraceCore
internal import MillraceDSP

extension AudioVAD {
  public static let contract = NodeContract(
    "audio.vad", "detects speech, and passes the audio on",
    text: """
      The engine `silero` is a small neural network whose weights `make models` fetches once; `energy` counts what is louder than \
      the noise floor as speech. Thresholds of 0.35 and 0.2 suit a distant microphone better than the defaults. With `gate` only \
      speech passes, from `preRoll` before its first sample on.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio to analyse")],
    outputs: [
      PortContract(
        "out", AudioLimits.pcm, text: "the same packets; with `gate` only those around speech",
        required: false)
    ],
    parameters: [
      ParameterContract(
        "engine", .choice(["silero", "energy"]), default: "silero",
        text: "silero: the neural network; energy: level alone, without a model"),
      ParameterContract(
        "model", .path, text: "weights file; default: the one make models writes"),
      ParameterContract(
        "start", .number(0.01...0.99), default: 0.5, live: true,
        text: "probability from which speech may start"),
      ParameterContract(
        "stop", .number(0.01...0.99), default: 0.3, live: true,
        text: "probability below which speech may end; above `start` it counts as `start`"),
      ParameterContract(
        "minSpeech", .number(0...mostLiveSpeech), unit: "ms", default: 64, live: true,
        text: "shorter speech is ignored; adds to the delay of a start"),
      ParameterContract(
        "minSilence", .number(0...10_000), unit: "ms", default: 500, live: true,
        text: "shorter pauses are ignored; the delay of an end"),
      ParameterContract("gate", .bool, default: false, text: "true: only speech passes"),
      ParameterContract(
        "preRoll", .number(0...2_000), unit: "ms", default: 300, text: "audio a gate passes before speech"),
      ParameterContract(
        "report", .number(0...60_000), unit: "ms", default: 0,
        text: "audio per `probability` event; 0: no events"),
    ],
    events: [
      EventContract(
        "speechStarted",
        text: "speech started: `position` of the first sample, `delay` of the detection in ms"),
      EventContract(
        "speechEnded",
        text: """
          speech ended: `position` after the last sample, `from` the first, `ms` between them, `delay` of the detection from the \
          end in ms
          """),
      EventContract(
        "maybeEnd",
        text:
          "speech may have ended, or paused between two words: `position` at which the level had been low for 40 ms"
      ),
      EventContract(
        "probability",
        text:
          "`probability`: the highest since the last event, up to `position`; `speech`: whether speech is in progress"
      ),
    ],
    budget: 300,
    examples: [
      #"{ "type": "audio.vad" }"#,
      #"{ "type": "audio.vad", "start": 0.35, "stop": 0.2, "gate": true, "preRoll": 400 }"#,
      #"{ "type": "audio.vad", "engine": "energy", "minSilence": 800 }"#,
    ],
    resolve: resolve)

  /// Largest `minSpeech` in milliseconds.
  static let mostLiveSpeech = 1_000.0

  /// Budget per step of the network in microseconds.
  private static let stepBudget = 200

  private static func resolve(_ resolution: inout Resolution) {
    guard let shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate else {
      return
    }
    resolution.passThrough()
    if resolution.parameters.bool("gate") {
      resolution.outputs["out"]?.burst = SpeechGate.burst
    }
    let steps = SpeechDetector.steps(in: frames, rate: rate)
    resolution.budget = 100 + stepBudget * steps
    // Per step a change or a hint, and a probability; one more change at a break in the stream.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: EventWriter.eventBytes, burst: 2 * steps + 1)
    guard let path = modelPath(resolution.parameters) else { return }
    do throws(NodeProblem) { try VoiceModel.check(path) } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
  }

  /// Path of the weights; nil if the engine needs none.
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

  /// Indices of the live parameters in the contract.
  private enum Index {
    static let start = 2
    static let stop = 3
    static let minSpeech = 4
    static let minSilence = 5
  }

  /// Sets a live parameter by its index.
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
