import MillraceCore
import MillraceGraph
import Testing

@Suite("Drawings of a plan")
struct DrawTests {
  @Test("a chain in the language of Graphviz")
  func dotOfChain() {
    #expect(
      GraphDrawing(SketchGraphs.chain).dot() == #"""
        digraph "uplink" {
          graph [rankdir=LR, fontname="Helvetica", labelloc=t, label="uplink\n4 nodes · 3 links · realtime clock"];
          node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, fillcolor="#ffffff"];
          edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];
          n0 [label="mic\naudio.read\npath: /corpus/…ce/speech-48k.wav\npace: true", color="#a54b08", tooltip="plays the audio of a file into the graph"];
          n1 [label="to16k\naudio.resample\nrate: 16000 Hz", color="#0b756c", tooltip="changes the sample rate"];
          n2 [label="enc\nopus.encode\nbitrate: 32000 bit/s", color="#0b756c", tooltip="compresses speech or music to Opus"];
          n3 [label="out\nogg.write\npath: uplink.opus", color="#a54b08", tooltip="writes an Ogg Opus file"];
          n0 -> n1 [label="s16 48000 Hz 1 ch\n10 × 20 ms, block", taillabel="out", headlabel="in", color="#1f62c4"];
          n1 -> n2 [label="s16 16000 Hz 1 ch\n10 × 20 ms, block", taillabel="out", headlabel="in", color="#1f62c4"];
          n2 -> n3 [label="opus 16000 Hz 1 ch\n10 × 20 ms, block", taillabel="out", headlabel="in", color="#b93a0a"];
        }

        """#)
  }

  @Test("a chain as a Mermaid flow chart")
  func mermaidOfChain() {
    #expect(
      GraphDrawing(SketchGraphs.chain).mermaid() == """
        ---
        title: "uplink"
        ---
        flowchart LR
          n0["<b>mic</b><br/>audio.read<br/>path: /corpus/…ce/speech-48k.wav<br/>pace: true"]:::bulk
          n1["<b>to16k</b><br/>audio.resample<br/>rate: 16000 Hz"]:::voice
          n2["<b>enc</b><br/>opus.encode<br/>bitrate: 32000 bit/s"]:::voice
          n3["<b>out</b><br/>ogg.write<br/>path: uplink.opus"]:::bulk
          n0 -- "s16 48000 Hz 1 ch<br/>10 × 20 ms, block" --> n1
          n1 -- "s16 16000 Hz 1 ch<br/>10 × 20 ms, block" --> n2
          n2 -- "opus 16000 Hz 1 ch<br/>10 × 20 ms, block" --> n3
          classDef voice stroke:#0b756c,stroke-width:2px
          classDef bulk stroke:#a54b08,stroke-width:2px

        """)
  }

  @Test("a value from the environment appears in no drawing")
  func secretsAreMasked() {
    let drawing = GraphDrawing(SketchGraphs.duplex)
    for text in [drawing.dot(), drawing.mermaid(), drawing.svg()] {
      #expect(!text.contains("sk-very-secret"))
      #expect(text.contains("(secret)"))
    }
  }

  @Test("links that close a cycle are dashed, and only those")
  func feedbackIsDashed() {
    let drawing = GraphDrawing(SketchGraphs.duplex)
    let dashed = drawing.dot().split(separator: "\n").filter { $0.contains("style=dashed") }
    #expect(dashed.count == 2)
    #expect(dashed.allSatisfy { $0.contains("n4 -> n1") || $0.contains("n4 -> n3") })
    #expect(drawing.mermaid().split(separator: "\n").count { $0.contains("-. \"") } == 2)
    // One more in the legend.
    #expect(
      drawing.svg().split(separator: "\n").count {
        $0.contains("class=\"route") && $0.contains(" feedback\"")
      }
        == 3)
    #expect(!GraphDrawing(SketchGraphs.fan).svg().contains(" feedback\""))
  }

  @Test("the same plan gives the same SVG, byte for byte")
  func svgIsDeterministic() {
    let first = GraphDrawing(SketchGraphs.fan).svg()
    for _ in 0..<20 { #expect(GraphDrawing(SketchGraphs.fan).svg() == first) }
  }

  @Test("a short chain flows to the right, a long one down the page, unless told otherwise")
  func automaticDirection() {
    #expect(
      Boxes(of: SketchGraphs.chain, .automatic).top("mic")
        == Boxes(of: SketchGraphs.chain, .automatic).top("out"))
    let long = Boxes(of: SketchGraphs.duplex, .automatic)
    #expect(long.left("aec") < long.right("mic"))
    #expect(
      Boxes(of: SketchGraphs.duplex, .right).left("aec") > Boxes(of: SketchGraphs.duplex, .right).right("mic")
    )
  }

  @Test("no two boxes overlap", arguments: GraphDrawing.Direction.allCases)
  func boxesStayApart(direction: GraphDrawing.Direction) {
    for plan in [SketchGraphs.chain, SketchGraphs.fan, SketchGraphs.duplex] {
      let boxes = Boxes(of: plan, direction).all
      #expect(boxes.count == plan.nodes.count)
      for (index, box) in boxes.enumerated() {
        for other in boxes[(index + 1)...] { #expect(!box.overlaps(other), "\(box.name) and \(other.name)") }
      }
    }
  }

  @Test("links over several layers run past the nodes between, not through them")
  func longLinksGoAround() throws {
    // mic.events passes the layer of the resamplers on its way to the log.
    let svg = GraphDrawing(SketchGraphs.fan).svg(direction: .right)
    let boxes = Boxes(svg).all
    let way = try #require(svg.path(ofLink: "mic.events -&gt; events.in2"))
    for (x, y) in way.points {
      for box in boxes where box.name != "mic" && box.name != "events" {
        #expect(!box.contains(x, y), "(\(x), \(y)) lies in \(box.name)")
      }
    }
  }

  @Test("a chain is drawn with straight links")
  func chainIsStraight() throws {
    let svg = GraphDrawing(SketchGraphs.chain).svg(direction: .down)
    let way = try #require(svg.path(ofLink: "to16k -&gt; enc"))
    #expect(Set(way.points.map(\.0)).count == 1)
  }

  @Test("names that mean something in a format are written as text")
  func specialCharacters() {
    var sketch = PlanSketch("a \"b\" <c> & d\\e")
    sketch.node("mic", SketchContracts.read, ["path": "x<y>&\"z\".wav"])
    let drawing = GraphDrawing(sketch.plan)
    #expect(drawing.svg().contains(#"a &quot;b&quot; &lt;c&gt; &amp; d\e"#))
    #expect(drawing.dot().contains(#"digraph "a \"b\" <c> & d\\e" {"#))
    #expect(drawing.mermaid().contains("path: x#60;y#62;#38;#34;z#34;.wav"))
    #expect(drawing.mermaid().contains(#"title: "a \"b\" <c> & d\\e""#))
  }

  @Test("notes are shown at their node and link, and the subtitle replaces the counted one")
  func notes() {
    let notes = DrawingNotes(
      nodes: ["enc": ["1000 packets"]], links: [2: ["12 dropped"]], subtitle: "after 20 s")
    let drawing = GraphDrawing(SketchGraphs.chain, notes: notes)
    #expect(drawing.dot().contains(#"bitrate: 32000 bit/s\n1000 packets"#))
    #expect(drawing.dot().contains(#"10 × 20 ms, block\n12 dropped"#))
    for text in ["1000 packets", "12 dropped", "after 20 s"] { #expect(drawing.svg().contains(">\(text)<")) }
    #expect(!drawing.svg().contains("4 nodes"))
  }

  @Test("a node with many parameters shows the first four and counts the rest")
  func manyParameters() {
    let contract = NodeContract(
      "x.y", "many", parameters: (1...7).map { ParameterContract("p\($0)", .integer(0...9), text: "") })
    var sketch = PlanSketch("many")
    sketch.node("n", contract, Dictionary(uniqueKeysWithValues: (1...7).map { ("p\($0)", .integer($0)) }))
    #expect(GraphDrawing(sketch.plan).dot().contains(#"p4: 4\nand 3 more""#))
  }

  @Test("a graph of one unlinked node can be drawn")
  func oneNode() {
    var sketch = PlanSketch("alone")
    sketch.node("mic", SketchContracts.capture)
    #expect(GraphDrawing(sketch.plan).svg().contains("not linked"))
  }

  @Test("a node may feed itself through an asynchronous path")
  func selfLoop() throws {
    var sketch = PlanSketch("loop")
    sketch.node("aec", SketchContracts.echoCancel)
    sketch.link("aec.out", "aec.reference", SketchShapes.pcm16)
    let way = try #require(GraphDrawing(sketch.plan).svg().path(ofLink: "aec -&gt; aec.reference"))
    #expect(way.isDashed)
  }
}

/// The boxes of a drawing, read back from its SVG.
private struct Boxes {
  struct Box {
    let name: String
    let x, y, width, height: Double
    func overlaps(_ other: Box) -> Bool {
      x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height
    }
    func contains(_ px: Double, _ py: Double) -> Bool {
      px > x && px < x + width && py > y && py < y + height
    }
  }
  var all: [Box] = []

  init(of plan: GraphPlan, _ direction: GraphDrawing.Direction) {
    self.init(GraphDrawing(plan).svg(direction: direction))
  }

  init(_ svg: String) {
    var name: String?
    for line in svg.split(separator: "\n") {
      if let node = line.attribute("data-node") { name = node }
      guard let known = name, line.hasPrefix("<rect class=\"box\"") else { continue }
      let numbers = ["x", "y", "width", "height"].map { Double(line.attribute($0)!)! }
      all.append(Box(name: known, x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3]))
      name = nil
    }
  }

  private func box(_ name: String) -> Box { all.first { $0.name == name }! }
  func top(_ name: String) -> Double { box(name).y }
  func left(_ name: String) -> Double { box(name).x }
  func right(_ name: String) -> Double { box(name).x + box(name).width }
}

extension String {
  /// The way of a link: the points its path goes through, control points left out.
  fileprivate func path(ofLink name: String) -> (points: [(Double, Double)], isDashed: Bool)? {
    let lines = split(separator: "\n")
    guard let start = lines.firstIndex(where: { $0.attribute("data-link") == name }) else { return nil }
    guard let path = lines[start...].first(where: { $0.hasPrefix("<path class=\"route") }) else { return nil }
    var points: [(Double, Double)] = []
    var command: Character = "M"
    var numbers: [Double] = []
    for token in path.attribute("d")!.replacing(/([MLCQ])/, with: { " \($0.1) " }).split(separator: " ") {
      if let number = Double(token) { numbers.append(number) } else { command = token.first! }
      let needed = ["M": 2, "L": 2, "Q": 4, "C": 6][command]!
      if numbers.count == needed {
        points.append((numbers[needed - 2], numbers[needed - 1]))
        numbers = []
      }
    }
    return (points, path.contains("feedback"))
  }
}

extension Substring {
  fileprivate func attribute(_ name: String) -> String? {
    guard let start = range(of: " \(name)=\"") else { return nil }
    return String(self[start.upperBound...].prefix { $0 != "\"" })
  }

  private func range(of text: String) -> Range<Index>? { ranges(of: text).first }
}
