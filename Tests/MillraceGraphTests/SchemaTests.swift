import MillraceCore
import MillraceGraph
import Testing

@Suite("The JSON Schema of graph files")
struct SchemaTests {
  private let schema: JSONNode

  init() throws {
    let text = GraphSchema(contracts: SketchContracts.all).json()
    schema = try JSONDocument.scan(SourceFile(name: "schema.json", text: text)).root
  }

  private func definition(_ type: String) throws -> JSONNode {
    try #require(schema["$defs"]?["node.\(type)"])
  }

  @Test("it names its dialect and takes no unknown key at the top")
  func top() {
    #expect(schema["$schema"]?.string == "https://json-schema.org/draft/2020-12/schema")
    #expect(schema["additionalProperties"]?.bool == false)
    #expect(schema["required"]?.array?.compactMap(\.string) == ["millrace", "nodes"])
  }

  @Test("it knows exactly the keys the reader knows")
  func keys() throws {
    func names(_ node: JSONNode?) -> Set<String> {
      Set((node?["properties"]?.object?.members ?? []).map(\.key))
    }
    let definitions = try #require(schema["$defs"])
    #expect(names(schema) == Set(GraphKeys.graph))
    #expect(names(definitions["parameter"]) == Set(GraphKeys.parameter))
    #expect(names(definitions["node.graph"]) == Set(GraphKeys.include))
    #expect(names(definitions["link"]?["anyOf"]?.array?[1]) == Set(GraphKeys.link))
    let read = Set(SketchContracts.read.parameters.map(\.name))
    #expect(names(definitions["node.audio.read"]).subtracting(read) == Set(GraphKeys.node))
    let limits = definitions["link"]?["anyOf"]?.array?[1]["properties"]?["capacity"]?["anyOf"]?.array?[0]
    #expect(limits?["maximum"]?.integer == Int64(LinkCapacity.packetRange.upperBound))
  }

  @Test("every node type has a definition, a choice with its summary, and a branch that leads to it")
  func everyType() throws {
    let choices = try #require(schema["$defs"]?["node"]?["properties"]?["type"]?["oneOf"]?.array)
    let branches = try #require(schema["$defs"]?["node"]?["allOf"]?.array)
    for contract in SketchContracts.all {
      let definition = try definition(contract.type)
      #expect(definition["properties"]?["type"]?["const"]?.string == contract.type)
      #expect(definition["additionalProperties"]?.bool == false)
      #expect(
        choices.contains {
          $0["const"]?.string == contract.type && $0["description"]?.string == contract.summary
        })
      #expect(
        branches.contains {
          $0["if"]?["properties"]?["type"]?["const"]?.string == contract.type
            && $0["then"]?["$ref"]?.string == "#/$defs/node.\(contract.type)"
        })
    }
    #expect(choices.count == SketchContracts.all.count + 1, "and the included graph")
  }

  @Test("an integer has its range, default and unit, and may be a placeholder")
  func integers() throws {
    let bitrate = try #require(definition("opus.encode")["properties"]?["bitrate"])
    let alternatives = try #require(bitrate["anyOf"]?.array)
    #expect(alternatives[0]["type"]?.string == "integer")
    #expect(alternatives[0]["minimum"]?.integer == 6000)
    #expect(alternatives[0]["maximum"]?.integer == 510_000)
    #expect(alternatives[1]["$ref"]?.string == "#/$defs/placeholder")
    #expect(bitrate["default"]?.integer == 24_000)
    #expect(
      bitrate["description"]?.string
        == "the bit rate. Range: 6000 to 510000 bit/s. Can be set while the graph runs.")
  }

  @Test("a choice lists its words")
  func choices() throws {
    let frame = try #require(definition("opus.encode")["properties"]?["frame"])
    #expect(
      frame["anyOf"]?.array?[0]["enum"]?.array?.compactMap(\.string) == ["2.5", "5", "10", "20", "40", "60"])
    #expect(frame["default"]?.string == "20")
  }

  @Test("required parameters are required, others are not")
  func required() throws {
    #expect(try definition("audio.resample")["required"]?.array?.compactMap(\.string) == ["type", "rate"])
  }

  @Test("an included graph names its file; every key says what it is for, and its default where it has one")
  func includedGraph() throws {
    let definition = try definition("graph")
    #expect(definition["required"]?.array?.compactMap(\.string) == ["type", "path"])
    for member in definition["properties"]?.object?.members ?? [] where member.key != "type" {
      #expect(member.value["description"]?.string?.isEmpty == false, "\(member.key)")
    }
    let top = try #require(schema["properties"])
    #expect(top["clock"]?["default"]?.string == "realtime")
    #expect(top["onError"]?["description"]?.string?.isEmpty == false)
  }

  @Test("a range without an end leaves that end out, a list limits its items")
  func openRangesAndLists() throws {
    let contract = NodeContract(
      "x.y", "z",
      parameters: [
        ParameterContract("least", .integer(3...Int.max), text: ""),
        ParameterContract(
          "gains", .list(of: .number(-90...30), count: 1...8), unit: "dB", text: "gain of each input"),
      ])
    let text = GraphSchema(contracts: [contract]).json()
    let root = try JSONDocument.scan(SourceFile(name: "s", text: text)).root
    let properties = try #require(root["$defs"]?["node.x.y"]?["properties"])
    let least = try #require(properties["least"]?["anyOf"]?.array?[0])
    #expect(least["minimum"]?.integer == 3)
    #expect(least["maximum"] == nil)
    let gains = try #require(properties["gains"]?["anyOf"]?.array?[0])
    #expect(gains["minItems"]?.integer == 1)
    #expect(gains["maxItems"]?.integer == 8)
    #expect(gains["items"]?["anyOf"]?.array?[0]["minimum"]?.integer == -90)
    #expect(
      properties["gains"]?["description"]?.string
        == "gain of each input. Range: 1 to 8 items, each -90 to 30 dB.")
  }
}
