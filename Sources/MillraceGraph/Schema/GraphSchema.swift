public import MillraceCore

/// The JSON Schema (2020-12) of graph files with the node types of a catalogue, for completion, hovers and validation in an editor.
///
/// It covers keys, types, ranges and choices. Links to unknown ports, format mismatches and other problems across a file are found by
/// the checks (`millrace check`).
public struct GraphSchema: Sendable {
  private let contracts: [NodeContract]

  /// The schema for the node types of a catalogue.
  public init(_ catalogue: Catalogue) {
    self.init(contracts: catalogue.entries.values.map(\.contract))
  }

  /// The schema for node types by their contracts.
  public init(contracts: [NodeContract]) {
    self.contracts = contracts.sorted { $0.type < $1.type }
  }

  /// The dialect of JSON Schema.
  public static let dialect = "https://json-schema.org/draft/2020-12/schema"

  /// Any string with a placeholder such as `${input}` or `${env:NAME}`, whose value is known only when the graph is loaded.
  static let placeholderPattern = "\\$\\{[^}]+\\}"
  /// Names of nodes and parameters: no dot and no white space. The checks apply the full rule: many regular expression engines lack
  /// character classes of Unicode.
  static let namePattern = "^[^.\\s]+$"
  static let endPattern = "^\\s*[^.\\s]+(\\.[^.\\s]+)?\\s*$"
  static let chainPattern = "^[^>]+(->[^>]+)+$"
  static let callTimePattern = "^[0-9]+(\\.[0-9]+)? *(us|ms|s)$"
  static let sizePattern =
    "^[0-9]+(\\.[0-9]+)? *(\(SizeText.Unit.allCases.map(\.rawValue).joined(separator: "|")))$"
  static let timePattern = "^[0-9]+(\\.[0-9]+)? *(ms|s)$"

  /// The schema as indented JSON; the same bytes for the same catalogue.
  public func json() -> String {
    var json = JSONWriter(pretty: true)
    json.object { json in
      json.member("$schema", Self.dialect)
      json.member("title", "Millrace graph")
      json.member("description", "A media graph: nodes, and the links between them.")
      json.member("type", "object")
      json.strings("required", ["millrace", "nodes"])
      json.object("properties") { writeTopLevel(to: &$0) }
      json.member("additionalProperties", false)
      json.object("$defs") { writeDefinitions(to: &$0) }
    }
    return json.text + "\n"
  }

  // MARK: The file

  private func writeTopLevel(to json: inout JSONWriter) {
    json.object("millrace") { json in
      json.member("description", "The version of the file format.")
      json.member("const", 1)
    }
    json.property("name", "string", "The name shown in listings, drawings and reports.")
    json.reference("text", "prose", "A description of the graph.")
    json.reference("comment", "prose", Self.commentText)
    json.choice(
      "clock", Clock.Kind.allCases.map(\.rawValue), "The clock the graph runs on.", default: "realtime")
    json.reference("onError", "errorPolicy", "What happens when a node without a policy of its own fails.")
    json.object("memory") { json in
      json.member(
        "description",
        "The maximum memory of a run, such as \"512MB\"; a graph that can use more is refused.")
      json.anyOf { $0.text(matching: Self.sizePattern) }
    }
    json.object("parameters") { json in
      json.member(
        "description", "Values set from outside, by --set or an including graph, and used as ${name}.")
      json.member("type", "object")
      json.object("propertyNames") { $0.member("pattern", Self.namePattern) }
      json.object("additionalProperties") { $0.member("$ref", "#/$defs/parameter") }
    }
    json.object("nodes") { json in
      json.member("description", "The nodes, by name.")
      json.member("type", "object")
      json.object("propertyNames") { $0.member("pattern", Self.namePattern) }
      json.object("additionalProperties") { $0.member("$ref", "#/$defs/node") }
    }
    json.object("links") { json in
      json.member("description", "The links between nodes.")
      json.member("type", "array")
      json.object("items") { $0.member("$ref", "#/$defs/link") }
    }
    json.object("overload") { json in
      json.member("description", "Load shedding, step by step, while a worker is too busy.")
      json.member("type", "array")
      json.object("items") { $0.member("$ref", "#/$defs/overloadStep") }
    }
    json.object("expose") { json in
      json.member(
        "description", "Ports for graphs that include this one, by the names that they use.")
      json.member("type", "object")
      json.object("additionalProperties") { $0.member("$ref", "#/$defs/end") }
    }
  }

  // MARK: Shared definitions

  private func writeDefinitions(to json: inout JSONWriter) {
    json.object("placeholder") { json in
      json.member(
        "description", "A value set when the graph is loaded: ${name}, ${env:NAME} or ${env:NAME:-default}."
      )
      json.member("type", "string")
      json.member("pattern", Self.placeholderPattern)
    }
    json.object("prose") { json in
      json.strings("type", ["string", "array"])
      json.object("items") { $0.member("type", "string") }
    }
    json.object("errorPolicy") { json in
      json.anyOf { $0.words(ErrorPolicy.allCases.map(\.rawValue)) }
    }
    writeOverloadStep(to: &json)
    writeParameter(to: &json)
    writeLink(to: &json)
    writeNode(to: &json)
    writeInclude(to: &json)
    for contract in contracts { NodeSchema(contract).write(to: &json) }
  }

  private func writeOverloadStep(to json: inout JSONWriter) {
    json.object("overloadStep") { json in
      json.member("type", "object")
      json.strings("required", ["above"])
      json.object("properties") { json in
        json.object("above") { json in
          json.member(
            "description",
            "The step applies while a worker of the graph is busy for more percent of the time.")
          json.anyOf { $0.integer(in: OverloadStep.aboveRange) }
        }
        json.object("set") { json in
          json.member(
            "description", "Live parameters, as node.parameter, and their values while the step applies.")
          json.member("type", "object")
        }
        json.object("shed") { json in
          json.member("description", "Nodes whose input is discarded while the step applies.")
          json.member("type", "array")
          json.object("items") { $0.member("type", "string") }
        }
        json.property("refuse", "boolean", "Whether new sessions are refused while the step applies.")
        json.reference("comment", "prose", Self.commentText)
      }
      json.member("additionalProperties", false)
    }
  }

  private func writeParameter(to json: inout JSONWriter) {
    json.object("parameter") { json in
      json.member("type", "object")
      json.object("properties") { json in
        json.object("default") {
          $0.member("description", "The value when none is set. Without a default, one must be set.")
        }
        json.object("type") { json in
          json.member(
            "description",
            "The type of a value from outside; by default that of the node parameter it is used for.")
          json.strings("enum", ["string", "integer", "number", "bool", "path"])
        }
        json.reference("text", "prose", "A description of the parameter.")
        json.reference("comment", "prose", Self.commentText)
      }
      json.member("additionalProperties", false)
    }
  }

  private func writeLink(to json: inout JSONWriter) {
    json.object("end") { json in
      json.member("description", "A node, or node.port when it has several.")
      json.member("type", "string")
      json.member("pattern", Self.endPattern)
    }
    json.object("link") { json in
      json.array("anyOf") { json in
        json.object { json in
          json.member("description", "A chain: \"mic -> enc -> out\".")
          json.member("type", "string")
          json.member("pattern", Self.chainPattern)
        }
        json.object { json in
          json.member("type", "object")
          json.strings("required", ["from", "to"])
          json.object("properties") { writeLinkProperties(to: &$0) }
          json.member("additionalProperties", false)
        }
      }
    }
  }

  private func writeLinkProperties(to json: inout JSONWriter) {
    json.reference("from", "end", "The output.")
    json.reference("to", "end", "The input.")
    json.object("capacity") { json in
      json.member(
        "description",
        "How much the link holds before whenFull applies: packets, or a time such as \"200ms\".")
      json.anyOf { json in
        json.integer(in: LinkCapacity.packetRange)
        json.text(matching: Self.timePattern)
      }
    }
    json.object("whenFull") { json in
      json.member("description", "What happens when the link is full.")
      json.anyOf { $0.words(LinkPolicy.allCases.map(\.rawValue)) }
    }
    json.reference("comment", "prose", Self.commentText)
  }

  /// The description of `comment`.
  static let commentText = "Ignored by the program."

  // MARK: Nodes

  private func writeNode(to json: inout JSONWriter) {
    json.object("node") { json in
      json.member("type", "object")
      json.strings("required", ["type"])
      json.object("properties") { json in
        json.object("type") { json in
          json.array("oneOf") { json in
            for contract in contracts {
              json.object { json in
                json.member("const", contract.type)
                json.member("description", contract.summary)
              }
            }
            json.object { json in
              json.member("const", "graph")
              json.member("description", "another graph file as one node")
            }
          }
        }
      }
      json.array("allOf") { json in
        for type in contracts.map(\.type) + ["graph"] {
          json.object { json in
            json.object("if") { json in
              json.object("properties") { json in json.object("type") { $0.member("const", type) } }
              json.strings("required", ["type"])
            }
            json.object("then") { $0.member("$ref", "#/$defs/node.\(type)") }
          }
        }
      }
    }
  }

  private func writeInclude(to json: inout JSONWriter) {
    json.object("node.graph") { json in
      json.member("title", "graph")
      json.member("description", "another graph file as one node")
      json.member("type", "object")
      json.strings("required", ["type", "path"])
      json.object("properties") { json in
        json.object("type") { $0.member("const", "graph") }
        json.property("path", "string", "The file; a relative path starts at the directory of this one.")
        json.object("set") { json in
          json.member("description", "Values for the parameters of that graph.")
          json.member("type", "object")
        }
        json.reference("onError", "errorPolicy", "What happens when a node of that graph fails.")
        json.reference("comment", "prose", Self.commentText)
      }
      json.member("additionalProperties", false)
    }
  }
}
