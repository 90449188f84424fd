import MillraceCore
import MillraceGraph
import Testing

@Suite("Listings and pages of node types")
struct ReferenceTests {
  @Test("the listing groups types by family and wraps summaries under each other")
  func listing() {
    let listing = NodeListing(contracts: [
      SketchContracts.write, SketchContracts.resample, SketchContracts.echoCancel,
    ])
    #expect(
      listing.text(TerminalStyle(width: 50, isColoured: false)) == """
        audio
          audio.echoCancel  takes the loudspeaker's sound
                            out of the microphone's
          audio.resample    changes the sample rate

        ogg
          ogg.write         writes an Ogg Opus file

        3 node types; nodes TYPE shows the details of one

        """)
  }

  @Test("a page tells ports, parameters, events and how the node runs")
  func page() {
    #expect(
      NodePage(SketchContracts.dialog).text() == """
        bailian.dialog
          talks to a voice service

        Inputs
          audio         opus or pcm, required
                        the user
          control       event, optional
                        commands

        Outputs
          audio         mp3
                        the reply
          events        event, optional
                        events of the node, as JSON objects

        Parameters
          model         string, required
                        the model
          key           string, required
                        the key

        Events
          state         the state

        Running
          lane          external: it has its own thread or task
          runs          when any driving input has a packet
          clocks        realtime and virtual
          asynchronous  audio → audio (allowed in a cycle)

        """)
  }

  @Test("a parameter's line has type, range, unit, default and whether it is live")
  func parameterLine() {
    let text = NodePage(SketchContracts.encode).text()
    #expect(text.contains("  bitrate       integer, 6000 to 510000 bit/s, default 24000 bit/s, live\n"))
    #expect(text.contains("  frame         one of 2.5, 5, 10, 20, 40, 60, default \"20\" ms\n"))
  }

  @Test("a range without an end tells only the end it has")
  func openRanges() {
    let most = Double.greatestFiniteMagnitude
    let contract = NodeContract(
      "x.y", "z",
      parameters: [
        ParameterContract("least", .number(2...most), unit: "s", text: "a"),
        ParameterContract("most", .number(-most...3), text: "b"),
        ParameterContract("any", .number(-most...most), text: "c"),
      ])
    let text = NodePage(contract).text()
    #expect(text.contains("least         number, at least 2 s\n"))
    #expect(text.contains("most          number, at most 3\n"))
    #expect(text.contains("any           number\n"))
  }

  @Test("an input that only accompanies, and a repeated port, say so")
  func ports() {
    #expect(
      NodePage(SketchContracts.echoCancel).text().contains(
        "reference     pcm, optional, does not make the node run\n"))
    #expect(NodePage(SketchContracts.mix).text().contains("in1…in8       pcm, at least 1\n"))
  }

  @Test("colour is used only where it is asked for")
  func colour() {
    #expect(!NodePage(SketchContracts.encode).text().contains("\u{1B}"))
    let coloured = NodePage(SketchContracts.encode).text(TerminalStyle(width: 80, isColoured: true))
    #expect(coloured.contains("\u{1B}[32mbitrate\u{1B}[0m"))
  }

  @Test("a page in Markdown is made of tables, with marks of Markdown in texts escaped")
  func markdown() {
    let contract = NodeContract(
      "x.y", "does a | b",
      parameters: [ParameterContract("rate", .integer(1...9), unit: "Hz", default: 5, text: "a|b <c>")],
      examples: [#"{ "type": "x.y" }"#])
    #expect(
      NodePage(contract).markdown() == #"""
        # `x.y`

        does a | b

        ## Parameters

        | parameter | type | range | default | live | what it does |
        | --- | --- | --- | --- | --- | --- |
        | `rate` | integer | 1 to 9 Hz | `5 Hz` |  | a\|b &lt;c> |

        ## Running

        - lane: voice, at most 500 us a call
        - runs: when any driving input has a packet
        - clocks: realtime and virtual

        ## Examples

        ```json
        { "type": "x.y" }
        ```

        """#)
  }

  @Test("the reference has an index and a page for each type")
  func files() {
    let files = NodeListing(contracts: SketchContracts.all).markdownFiles()
    #expect(files.count == SketchContracts.all.count + 1)
    #expect(files[0].name == "README.md")
    for contract in SketchContracts.all {
      #expect(files[0].text.contains("[`\(contract.type)`](\(contract.type).md)"))
      #expect(
        files.contains { $0.name == "\(contract.type).md" && $0.text.hasPrefix("# `\(contract.type)`\n") })
    }
  }

  @Test("the listing as JSON holds every contract")
  func json() throws {
    let text = NodeListing(contracts: SketchContracts.all).json()
    let items = try #require(try JSONDocument.scan(SourceFile(name: "nodes", text: text)).root.array)
    #expect(items.compactMap { $0["type"]?.string } == SketchContracts.all.map(\.type).sorted())
    let encode = try #require(items.first { $0["type"]?.string == "opus.encode" })
    #expect(encode["parameters"]?.array?[0]["default"]?.integer == 24_000)
  }
}

@Suite("Plans explained")
struct ExplanationTests {
  @Test("a chain: nodes, links, latency and memory")
  func chain() {
    #expect(
      PlanExplanation(SketchGraphs.chain).text() == """
        uplink: 4 nodes, 3 links, realtime clock

        Nodes
          node   type            lane    budget  latency  produces
          mic    audio.read      bulk                     by the clock
          to16k  audio.resample  voice   500 us   2.4 ms
          enc    opus.encode     voice  4000 us   6.5 ms
          out    ogg.write       bulk

        Links
          link          format                   packet         capacity          when full  threads
          mic -> to16k  s16 48000 Hz 1 ch   960 samples  20 ms        10  200 ms  block      bulk → voice
          to16k -> enc  s16 16000 Hz 1 ch   320 samples  20 ms        10  200 ms  block
          enc -> out    opus 16000 Hz 1 ch       1276 B  20 ms        10  200 ms  block      voice → bulk

        Latency
          from → to  algorithms  longest packet  full links add  via
          mic → out      8.9 ms           20 ms          600 ms  to16k, enc

        Memory
          up to 125.8 KiB for a run: 101.2 KiB for blocks, 8.4 KiB for links and 16.2 KiB for nodes
          largest: events 55.3 KiB (100 packets of 448 B), link "mic -> to16k" 26.3 KiB (13 packets of 1.9 KiB, capacity 10) and link "enc -> out" 18.2 KiB (13 packets of 1.2 KiB, capacity 10)

        """)
  }

  @Test("as JSON, a link tells its ends, format, packet, capacity and whether it crosses threads")
  func linkAsJSON() throws {
    let text = PlanExplanation(SketchGraphs.chain).json()
    let links = try #require(try JSONDocument.scan(SourceFile(name: "plan", text: text)).root["links"]?.array)
    #expect(links.map { $0["from"]?.string } == ["mic", "to16k", "enc"])
    #expect(links.map { $0["to"]?.string } == ["to16k", "enc", "out"])
    #expect(links.map { $0["crossesThreads"]?.bool } == [true, false, true])
    #expect(links.map { $0["feedback"]?.bool } == [false, false, false])
    #expect(links.map { $0["packetSamples"]?.integer } == [960, 320, nil])
    #expect(links.map { $0["packetDuration"]?.double } == [20, 20, 20])
    #expect(links.map { $0["capacity"]?.integer } == [10, 10, 10])
    #expect(links.map { $0["capacityDuration"]?.double } == [200, 200, 200])
    #expect(links.map { $0["whenFull"]?.string } == ["block", "block", "block"])
    #expect(links[2]["format"]?.string == "opus 16000 Hz 1 ch")
    #expect(links[2]["packetBytes"]?.integer == 1_276)
  }

  @Test("links that close a cycle are marked and not counted into a latency")
  func cycle() {
    let text = PlanExplanation(SketchGraphs.duplex).text()
    #expect(text.contains("player.reference -> aec.reference (feedback)"))
    #expect(text.contains("mic → player     10.5 ms"))
  }

  @Test("of two ways to the same sink the one with more latency counts")
  func longestWay() throws {
    var plan = SketchGraphs.fan
    plan.nodes[plan.nodes.firstIndex { $0.name == "high" }!].latency = 7_000_000
    let json = try JSONDocument.scan(SourceFile(name: "plan", text: PlanExplanation(plan).json())).root
    let first = try #require(json["paths"]?.array?.first)
    #expect(first["nodes"]?.array?.compactMap(\.string) == ["mic", "high", "mix", "enc", "out"])
    #expect(first["algorithms"]?.double == 7)
    #expect(first["longestPacket"]?.double == 20)
    #expect(first["fullLinks"]?.double == 800)
  }

  @Test("overload steps are described, as text and as JSON, without secrets")
  func overload() throws {
    var plan = SketchGraphs.duplex
    let node = try #require(plan.nodes.firstIndex { $0.name == "service" })
    plan.overload = [
      OverloadStep(
        above: 70, settings: [.init(node: node, parameter: "voice", value: "loud sk-very-secret")],
        shed: [node]),
      OverloadStep(above: 90, refuses: true),
    ]
    let name = plan.nodes[node].name
    let explanation = PlanExplanation(plan)
    #expect(
      explanation.text().contains(
        """
        Overload
          above 70 %: \(name).voice = "loud •••"; shed \(name)
          above 90 %: refuse new sessions
        """), "\(explanation.text())")
    let json = try JSONDocument.scan(SourceFile(name: "plan", text: explanation.json())).root
    let steps = try #require(json["overload"]?.array)
    #expect(steps.map { $0["above"]?.integer } == [70, 90])
    #expect(steps.map { $0["refusesSessions"]?.bool } == [false, true])
    #expect(steps[0]["set"]?.array?.first?["node"]?.string == name)
    #expect(steps[0]["set"]?.array?.first?["parameter"]?.string == "voice")
    #expect(steps[0]["set"]?.array?.first?["value"]?.string == "loud •••")
    #expect(steps[0]["shed"]?.array?.compactMap(\.string) == [name])
    let plain = try JSONDocument.scan(
      SourceFile(name: "plan", text: PlanExplanation(SketchGraphs.chain).json())
    ).root
    #expect(plain["overload"]?.array?.isEmpty == true)
  }

  @Test("no parameter value is shown")
  func noValues() {
    let explanation = PlanExplanation(SketchGraphs.duplex)
    #expect(!explanation.text().contains("sk-very-secret"))
    #expect(!explanation.json().contains("sk-very-secret"))
  }
}

@Suite("Figures")
struct FigureTests {
  @Test(
    "durations take the unit that suits them",
    arguments: [
      (0, "0"), (250, "250 ns"), (62_500, "62.5 us"), (20_000_000, "20 ms"), (1_500_000_000, "1.5 s"),
      (125_000_000_000, "2 min 5 s"), (-20_000_000, "-20 ms"),
    ] as [(Int64, String)])
  func durations(time: Int64, text: String) {
    #expect(Figures.duration(time) == text)
  }

  @Test(
    "numbers are rounded, not cut",
    arguments: [(0.05, "0.1"), (-0.04, "0"), (2.0, "2"), (1.96, "2"), (1e19, "-"), (.nan, "-")]
      as [(Double, String)])
  func numbers(value: Double, text: String) {
    #expect(Figures.number(value) == text)
  }

  @Test(
    "bytes take the unit that suits them, in powers of 1024",
    arguments: [
      (0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1 << 20, "1 MiB"), (3 << 19, "1.5 MiB"),
      (1 << 30, "1 GiB"),
    ])
  func bytes(count: Int, text: String) {
    #expect(Figures.bytes(count) == text)
  }

  @Test("a text is cut by columns, wide characters counting two")
  func cutting() {
    #expect(TerminalStyle.cut("abcdef", to: 4) == "abc…")
    #expect(TerminalStyle.cut("声音声音", to: 5) == "声音…")
    #expect(TerminalStyle.cut("abc", to: 3) == "abc")
  }
}
