import MillraceCore
import MillraceGraph
import Testing

@Suite("Parameters of graphs")
struct GraphParameterTests {
  private static let file = """
    { "millrace": 1,
      "parameters": {
        "input": { "default": "speech.wav", "text": "what the microphone hears" },
        "rate": { "default": 16000 },
        "gain": { "default": 3, "type": "number" },
        "name": { "default": "take" },
        "pace": { "default": true }
      },
      "nodes": {
        "mic": { "type": "audio.read", "path": "${input}", "pace": "${pace}" },
        "to": { "type": "audio.resample", "rate": "${rate}" },
        "gain": { "type": "audio.gain", "gain": "${gain}" },
        "out": { "type": "audio.write", "path": "out/${name}-${rate}-${pace}.wav" }
      },
      "links": [ "mic -> to -> gain -> out" ] }
    """

  @Test("defaults are used with their types, alone and inside texts")
  func defaults() throws {
    let plan = try GraphBench.plan(Self.file)
    #expect(plan.node("mic")?.parameters.string("path") == "speech.wav")
    #expect(plan.node("mic")?.parameters.bool("pace") == true)
    #expect(plan.node("to")?.parameters.integer("rate") == 16_000)
    #expect(plan.node("gain")?.parameters.number("gain") == 3)
    #expect(plan.node("out")?.parameters.string("path") == "out/take-16000-true.wav")
    #expect(plan.nodes.allSatisfy { $0.secrets.isEmpty })
  }

  @Test("text from outside is read as the type of the parameter it ends up in")
  func setValues() throws {
    let plan = try GraphBench.plan(
      Self.file, set: ["input": "stereo.wav", "rate": "24000", "gain": "-1.5", "name": "7", "pace": "false"])
    #expect(plan.node("mic")?.parameters.string("path") == "stereo.wav")
    #expect(plan.node("mic")?.parameters.bool("pace") == false)
    #expect(plan.node("to")?.parameters.integer("rate") == 24_000)
    #expect(plan.node("gain")?.parameters.number("gain") == -1.5)
    #expect(plan.node("out")?.parameters.string("path") == "out/7-24000-false.wav")
  }

  @Test("text from outside with commas is a list where one is wanted")
  func setLists() throws {
    let file = """
      { "millrace": 1, "parameters": { "gains": { "default": [0] }, "first": { "default": -3 } },
        "nodes": { "a": { "type": "audio.tone" }, "mix": { "type": "audio.mix", "gains": "${gains}" },
                   "other": { "type": "audio.mix", "gains": ["${first}", 2] }, "bin": { "type": "flow.null" } },
        "links": [ "a -> mix.in1 -> other.in1 -> bin" ] }
      """
    let plan = try GraphBench.plan(file, set: ["gains": "-6, 0.5", "first": "-12"])
    #expect(plan.node("mix")?.parameters.numbers("gains") == [-6, 0.5])
    #expect(plan.node("other")?.parameters.numbers("gains") == [-12, 2])
    #expect(try GraphBench.plan(file).node("mix")?.parameters.numbers("gains") == [0])
  }

  @Test("an unsuitable value from outside is reported with its origin")
  func setMistakes() {
    let words = GraphBench.words(
      Self.file, set: ["rate": "fast", "gain": "loud", "inptu": "a.wav", "zzz": "1"])
    #expect(
      words == """
        error: --set inptu: unknown parameter "inptu"; did you mean "input"?
        error: --set zzz: unknown parameter "zzz"; its parameters are "input", "rate", "gain", "name" and "pace"
        graph.json:5:5: error: parameter "gain" must be a number, found "loud" (from --set gain)
        graph.json:11:47: error: "rate" of audio.resample must be an integer from 8000 to 192000 Hz, found "fast" (from --set rate)
        4 errors
        """)
  }

  @Test("a dollar sign is itself, and two in front of a brace write the brace")
  func escapes() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1, "nodes": { "a": { "type": "audio.tone" },
          "out": { "type": "audio.write", "path": "$5-$$-$${a}-$" } }, "links": [ "a -> out" ] }
      """)
    #expect(plan.node("out")?.parameters.string("path") == "$5-$$-${a}-$")
  }

  // MARK: Environment

  private static let secret = """
    { "millrace": 1,
      "parameters": { "rate": { "default": "${env:RATE:-8000}" } },
      "nodes": {
        "mic": { "type": "audio.tone", "rate": "${rate}", "level": "${env:LEVEL:--6}" },
        "bot": { "type": "process.pipe", "command": ["bot", "--token", "Bearer ${env:TOKEN}"] },
        "out": { "type": "flow.null" }
      },
      "links": [ "mic -> bot -> out" ] }
    """

  @Test("values from the environment are secret, their fallbacks are not")
  func environment() throws {
    let plan = try GraphBench.plan(
      Self.secret, environment: ["TOKEN": "hunter2", "RATE": "16000", "LEVEL": ""])
    #expect(plan.node("mic")?.parameters.integer("rate") == 16_000)
    #expect(plan.node("mic")?.parameters.number("level") == -6)
    #expect(plan.node("mic")?.secrets == ["rate"])
    #expect(plan.node("bot")?.parameters.strings("command") == ["bot", "--token", "Bearer hunter2"])
    #expect(plan.node("bot")?.secrets == ["command"])
    let bare = try GraphBench.plan(Self.secret, environment: ["TOKEN": "hunter2"])
    #expect(bare.node("mic")?.parameters.integer("rate") == 8_000)
    #expect(bare.node("mic")?.secrets == [])
  }

  @Test("a missing variable is reported by name")
  func missingVariable() {
    let words = GraphBench.words(Self.secret)
    #expect(
      words == """
        graph.json:5:68: error: environment variable "TOKEN" is not set; set it, or write ${env:TOKEN:-default}
        1 error
        """)
  }

  @Test("no problem shows a value from the environment")
  func secretsStayHidden() {
    let words = GraphBench.words(
      Self.secret, environment: ["TOKEN": "t", "RATE": "secret-11", "LEVEL": "secret-22"])
    #expect(
      words == """
        graph.json:4:44: error: "rate" of audio.tone must be an integer from 8000 to 192000 Hz, found a secret value
        graph.json:4:64: error: "level" of audio.tone must be a number from -120 to 0 dB, found a secret value
        2 errors
        """)
  }

  // MARK: Paths

  @Test("a path starts where its first character was written: file, command line or including file")
  func paths() throws {
    let file = """
      { "millrace": 1,
        "parameters": { "input": { "default": "speech.wav" }, "folder": { "default": "takes" } },
        "nodes": {
          "mic": { "type": "audio.read", "path": "${input}" },
          "a": { "type": "audio.write", "path": "${folder}/a.wav" },
          "b": { "type": "audio.write", "path": "x/${folder}/b.wav" },
          "c": { "type": "audio.write", "path": "/tmp/c.wav" },
          "d": { "type": "audio.write", "path": "-" },
          "e": { "type": "audio.write", "path": "https://host/e.wav" }
        },
        "links": [ "mic -> a", "mic -> b", "mic -> c", "mic -> d", "mic -> e" ] }
      """
    let plan = try GraphBench.plan(file, name: "graphs/all.json")
    let path = { (plan: GraphPlan, name: String) in plan.node(name)?.parameters.string("path") }
    #expect(path(plan, "mic") == "graphs/speech.wav")
    #expect(path(plan, "a") == "graphs/takes/a.wav")
    #expect(path(plan, "c") == "/tmp/c.wav")
    #expect(path(plan, "d") == "-")
    #expect(path(plan, "e") == "https://host/e.wav")
    let set = try GraphBench.plan(
      file, set: ["input": "mine.wav", "folder": "here"], name: "graphs/all.json")
    #expect(path(set, "mic") == "mine.wav")
    #expect(path(set, "a") == "here/a.wav")
    #expect(path(set, "b") == "graphs/x/here/b.wav")
  }
}
