public import MillraceCore

extension DialogTurn {
  /// Bytes of the commands this node makes itself, and of those it copies: nearly all. Longer ones are handed on in the blocks they
  /// came in.
  private static let madeBytes = 512
  /// Packets one call may send: what a timeout asks for, what the input does, and the input itself.
  private static let burst = 6

  public static let contract = NodeContract(
    "dialog.turn", "decides whose turn it is, and what a voice over a reply means",
    text: """
      Sits between a service and everything that takes part in a turn: playback, a voice detector, the user's hand. It works \
      the same for every service, because all of them speak in the same events and take the same commands.
      """,
    inputs: [
      PortContract("service", .kind(.event), text: "events of the service"),
      PortContract("playback", .kind(.event), text: "events of audio.play", required: false),
      PortContract("voice", .kind(.event), text: "events of audio.vad", required: false),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands of the user or a program", required: false,
        holds: 2),
    ],
    outputs: [
      PortContract("control", .kind(.event), text: "commands and reports for the service", required: false)
    ],
    parameters: parameters,
    events: [
      EventContract("turn", text: "the turn changed: `from`, `to`, `cause`"),
      EventContract(
        "bargeIn", text: "a reply was broken off: `by` voice, service or hand, `ms` after the voice began"),
      EventContract("falseInterruption", text: "a voice over a reply was none: it held the reply for `ms`"),
      EventContract(
        "heard", text: "what was heard of a reply: `reply`, `samples`, `ms`, `whole` or cut off there"),
      EventContract("timedOut", text: "a wait took too long: `wait` is the state it was in"),
      EventContract(
        "questionDropped", text: "a question will not be asked: another came, or nobody is there"),
      EventContract("badCommand", text: "something on `control` is no command: `count` so far"),
      EventContract(
        "commandTooLong", text: "a command was not handed on: it has `bytes` of at most `most`"),
    ],
    budget: 100, drive: .itself,
    asynchronousPaths: ["service", "playback", "voice", "control"].map {
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
      if parameters.number("confirm") < parameters.number("minSpeech") {
        resolution.refuse(
          "confirm", "a voice can never come to \"minSpeech\" within it", cure: "make it at least as long")
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
        text: "how the user takes the floor"),
      ParameterContract(
        "bargeIn", .choice(["voice", "service"]), default: "voice",
        text: "what cuts a reply off in duplex: the local voice detector too, or only the service"),
      ParameterContract(
        "commandBytes", .integer(512...16_777_216), unit: "bytes", default: 262_144,
        text: "longest command of a program, such as a question with a picture in it"),
      wait("minSpeech", usual.minimumSpeech, "voice it takes to cut a reply off, pauses not counted"),
      wait("confirm", usual.confirmWindow, "time a voice has to come to `minSpeech`, from its beginning on"),
      wait("connect", usual.connect, "longest wait for the service to be there"),
      wait("speech", usual.speech, "longest speech of the user"),
      wait("answer", usual.answer, "longest wait for an answer"),
      wait("reply", usual.reply, "longest reply, to its last sample heard"),
      wait("listen", usual.listen, "longest wait for the service to listen again"),
      wait("reconnect", usual.reconnect, "longest time without a connection"),
      wait("close", usual.close, "longest wait for the service's good-bye"),
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
