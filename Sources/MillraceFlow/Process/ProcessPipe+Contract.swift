public import MillraceCore

extension ProcessPipe {
  public static let contract = NodeContract(
    "process.pipe", "runs any program as a node, over its standard input and output",
    text: """
      Sound goes in and out as raw 16-bit samples, text and events as lines. What the program says on its standard error is \
      kept for the words about a failure. The program is started without a shell; start sh -c for one.
      """,
    inputs: [
      PortContract(
        "in",
        .pcm(rates: .range(8_000...192_000), channels: .range(1...8), samples: [.s16])
          .or(.kind(.text)).or(.kind(.event)), text: "what the program reads", required: false)
    ],
    outputs: [
      PortContract(
        "out",
        .pcm(rates: .range(8_000...192_000), channels: .range(1...8), samples: [.s16])
          .or(.kind(.text)).or(.kind(.event)), text: "what the program writes", required: false)
    ],
    parameters: [
      ParameterContract(
        "command", .list(of: .string, count: 1...64), required: true, text: "the program and its arguments"),
      ParameterContract(
        "mode", .choice(["pcm", "lines"]), default: "pcm", text: "what the program writes: raw sound or lines"
      ),
      ParameterContract(
        "rate", .integer(8_000...192_000), unit: "Hz", text: "of the sound it writes; otherwise as the input"),
      ParameterContract(
        "channels", .integer(1...8), text: "of the sound it writes; otherwise as the input"),
      ParameterContract(
        "frame", .number(1...1_000), unit: "ms",
        text: "length of the packets its sound is cut into; otherwise as the input, or 20 ms"),
      ParameterContract(
        "stall", .number(0...86_400_000), unit: "ms", default: 0,
        text: "longest time it may leave its input unanswered; 0: no limit"),
      ParameterContract(
        "endStall", .number(0...86_400_000), unit: "ms", default: 10_000,
        text:
          "longest time it may neither read nor write once the graph is to end, or its input is over; 0: no limit"
      ),
      ParameterContract("directory", .path, text: "where it starts; otherwise where the graph runs"),
      ParameterContract(
        "environment", .list(of: .string, count: 0...64), default: .list([]), secret: .assigned,
        text:
          "variables as NAME=value; of this process's own the program gets only PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TZ, TMPDIR, TERM and XDG_RUNTIME_DIR"
      ),
    ],
    lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: [AsynchronousPath(from: "in", to: "out")], followsVirtualClock: false,
    examples: [
      #"{ "type": "process.pipe", "command": ["sox", "-t", "raw", "-r", "16000", "-e", "signed", "-b", "16", "-c", "1", "-", "-t", "raw", "-", "vol", "2"] }"#,
      #"{ "type": "process.pipe", "command": ["recognizer", "--json"], "mode": "lines", "stall": 5000 }"#,
    ],
    resolve: { ProcessShape.resolve(&$0) })
}
