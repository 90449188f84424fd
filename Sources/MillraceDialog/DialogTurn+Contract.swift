public import MillraceCore

extension DialogTurn {
  /// Block size of the output: enough for the node's own commands, and for nearly all it copies. Longer packets are passed on in
  /// the blocks they arrived in.
  private static let madeBytes = 512
  /// The most packets of one call: those of a timeout, those of an input, and the input itself.
  private static let burst = 6
  /// The most events of a call: its actions, and the answers to two commands.
  private static let mostEvents = TurnActions.limit + 2

  public static let contract = NodeContract(
    "dialog.turn", "turn-taking: decides whose turn it is, and what a voice over a reply means",
    text: """
      Sits between a service and everything that takes part in a turn: playback, a voice detector, and the user. It works the \
      same for every service, because all of them share the same events and commands.
      """,
    inputs: [
      PortContract("service", .kind(.event), text: "events of the service"),
      PortContract("playback", .kind(.event), text: "events of audio.play", required: false),
      PortContract("voice", .kind(.event), text: "events of audio.vad", required: false),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands of the user or the program",
        required: false,
        holds: 2),
      PortContract(
        "stream", .kind(.event),
        text: "events of rtmp.pull, where replies are a stream; the service gets `firstPicture`",
        required: false),
    ],
    outputs: [
      PortContract("control", .kind(.event), text: "commands and reports for the service", required: false)
    ],
    parameters: parameters,
    events: [
      EventContract("turn", text: "the state changed: `from`, `to`, `cause`"),
      EventContract(
        "bargeIn", text: "a reply was interrupted: `by` voice, service or manual, `ms` after the voice began"),
      EventContract(
        "falseInterruption", text: "a voice over a reply was not speech; the reply was ducked for `ms`"),
      EventContract(
        "heard",
        text: "how much of a reply was heard: `reply`, `samples`, `ms`; `whole` is false if it was cut off"),
      EventContract("timedOut", text: "a state timed out: `wait` is its name"),
      EventContract(
        "questionDropped", text: "a question was discarded: replaced by another, or without a service"),
      EventContract("badCommand", text: "an invalid command on `control`: `count` so far"),
      EventContract(
        "commandTooLong", text: "a command of `bytes` was discarded; the limit is `most`"),
      EventContract(
        "answer",
        text: "what came of a command that ended here, by its `id`: `ok`, or the members of an error"),
      EventContract(
        "commandRefused", text: "a command without an `id` had no effect: `text` says why"),
    ],
    budget: 100, drive: .itself,
    asynchronousPaths: ["service", "playback", "voice", "control", "stream"].map {
      AsynchronousPath(from: $0, to: "control")
    },
    examples: [
      #"{ "type": "dialog.turn" }"#,
      #"{ "type": "dialog.turn", "mode": "pushToTalk" }"#,
      #"{ "type": "dialog.turn", "minSpeech": 400, "confirm": 1000, "answer": 10000 }"#,
    ],
    resolve: { resolution in
      let parameters = resolution.parameters
      let inputs = resolution.inputs
      let reports = inputs.filter { $0.key != "control" }.values.map(\.packetBytes).max() ?? 0
      let longest = max(
        parameters.integer("commandBytes"), madeBytes, reports, inputs["control"]?.packetBytes ?? 0)
      resolution.outputs["control"] = OutputShape(
        .event, packetDuration: nil, packetBytes: longest, burst: burst, madeBytes: max(madeBytes, reports))
      // An answer repeats the id of its command, which may consist of escapes of six bytes.
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: EventWriter.eventBytes + 6 * DialogControl.mostIDBytes,
        burst: mostEvents)
      if parameters.number("confirm") < parameters.number("minSpeech") {
        resolution.refuse(
          "confirm", "it is shorter than \"minSpeech\"", cure: "make it at least as long"
        )
      }
    })

  private static var parameters: [ParameterContract] {
    let usual = TurnRules()
    func wait(_ name: String, _ time: Nanoseconds, _ text: String) -> ParameterContract {
      ParameterContract(
        name, .number(1...86_400_000), unit: "ms", default: .number(Double(time) / 1e6), text: text)
    }
    return [
      ParameterContract(
        "mode", .choice(DialogMode.allCases.map(\.rawValue)), default: "duplex",
        text: "how the user takes a turn"),
      ParameterContract(
        "bargeIn", .choice(["voice", "service"]), default: "voice",
        text: "what interrupts a reply in duplex: the local voice detector too, or only the service"),
      ParameterContract(
        "commandBytes", .integer(512...16_777_216), unit: "bytes", default: 262_144,
        text: "longest command of a program, such as a question with an image"),
      wait("minSpeech", usual.minimumSpeech, "speech needed for a barge-in, without pauses"),
      wait(
        "confirm", usual.confirmWindow, "time from the start of a voice in which it must reach `minSpeech`"),
      wait("connect", usual.connect, "longest time to connect to the service"),
      wait("speech", usual.speech, "longest speech of the user"),
      wait("answer", usual.answer, "longest wait for an answer"),
      wait("reply", usual.reply, "longest reply, until its last sample is played"),
      wait("listen", usual.listen, "longest wait for the service to listen again"),
      wait("reconnect", usual.reconnect, "longest time without a connection"),
      wait("close", usual.close, "longest wait for the service to close the session"),
    ]
  }

  static func rules(_ setup: borrowing NodeSetup) -> TurnRules {
    let parameters = setup.parameters
    func time(_ name: String) -> Nanoseconds { Nanoseconds(parameters.number(name) * 1e6) }
    var rules = TurnRules()
    rules.mode = DialogMode(rawValue: parameters.string("mode")) ?? .duplex
    rules.followsPlayback = setup.inputs[1].isLinked
    rules.listensForVoice = parameters.string("bargeIn") == "voice"
    rules.minimumSpeech = time("minSpeech")
    rules.confirmWindow = time("confirm")
    rules.connect = time("connect")
    rules.speech = time("speech")
    rules.answer = time("answer")
    rules.reply = time("reply")
    rules.listen = time("listen")
    rules.reconnect = time("reconnect")
    rules.close = time("close")
    return rules
  }
}

extension Catalogue {
  /// The nodes of this target: `dialog.turn`, `dialog.picture`.
  public static var dialog: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(DialogTurn.self)
    catalogue.add(DialogPicture.self)
    return catalogue
  }
}
