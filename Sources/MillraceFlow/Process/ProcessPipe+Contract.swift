public import MillraceCore

extension ProcessPipe {
  public static let contract = NodeContract(
    "process.pipe", "runs any program as a node, over its standard input and output",
    text: """
      Audio is exchanged as raw 16-bit samples, text and events as lines. The end of the program's standard error is kept \
      for the error message if it fails. The program is started without a shell; to use one, run sh -c.
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
        "mode", .choice(["pcm", "lines"]), default: "pcm", text: "what the program writes: raw audio or lines"
      ),
      ParameterContract(
        "rate", .integer(8_000...192_000), unit: "Hz",
        text: "sample rate of the audio it writes; by default that of the input"),
      ParameterContract(
        "channels", .integer(1...8), text: "channels of the audio it writes; by default those of the input"),
      ParameterContract(
        "frame", .number(1...1_000), unit: "ms",
        text: "packet length of the audio it writes; by default that of the input, or 20 ms"),
      ParameterContract(
        "stall", .number(0...86_400_000), unit: "ms", default: 0,
        text: "longest time without a response to its input; 0: no limit"),
      ParameterContract(
        "endStall", .number(0...86_400_000), unit: "ms", default: 10_000,
        text:
          "longest time it may neither read nor write once the graph or its input is ending; 0: no limit"
      ),
      ParameterContract(
        "directory", .path, text: "working directory; by default that of the graph's process"),
      ParameterContract(
        "environment", .list(of: .string, count: 0...64), default: .list([]), secret: .assigned,
        text:
          "variables as NAME=value; from this process's environment the program inherits only PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TZ, TMPDIR, TERM and XDG_RUNTIME_DIR"
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
