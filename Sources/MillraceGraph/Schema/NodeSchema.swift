package import MillraceCore

/// The part of the schema for one node type, generated from its contract.
struct NodeSchema {
  private let contract: NodeContract

  init(_ contract: NodeContract) { self.contract = contract }

  func write(to json: inout JSONWriter) {
    json.object("node.\(contract.type)") { json in
      json.member("title", contract.type)
      json.member(
        "description", contract.text.isEmpty ? contract.summary : "\(contract.summary)\n\n\(contract.text)")
      json.member("type", "object")
      json.strings("required", ["type"] + contract.parameters.filter(\.isRequired).map(\.name))
      json.object("properties") { json in
        json.object("type") { $0.member("const", contract.type) }
        for parameter in contract.parameters {
          json.object(parameter.name) { Self.write(parameter, to: &$0) }
        }
        writeCommon(to: &json)
      }
      json.member("additionalProperties", false)
    }
  }

  /// The keys of every node.
  private func writeCommon(to json: inout JSONWriter) {
    json.choice(
      "lane", Lane.allCases.map(\.rawValue), "The lane it runs on.", default: contract.lane.rawValue
    )
    json.reference("onError", "errorPolicy", "What happens when this node fails.")
    json.object("budget") { json in
      json.member(
        "description",
        "The time that one call may take on the voice lane: microseconds, or a time such as \"1.5ms\".")
      json.anyOf { json in
        json.integer(in: GraphPlan.Node.budgetRange)
        json.text(matching: GraphSchema.callTimePattern)
      }
      json.member("default", contract.budget)
    }
    json.object("maxAge") { json in
      json.member(
        "description",
        "The maximum age of packets that reach the node, such as \"60ms\"; older ones are counted and reported."
      )
      json.anyOf { $0.text(matching: GraphSchema.timePattern) }
    }
    json.property(
      "endsWith", "string",
      "The node whose end also ends this source, as if the graph drained: for example the service that a camera serves."
    )
    json.reference("comment", "prose", GraphSchema.commentText)
  }

  private static func write(_ parameter: ParameterContract, to json: inout JSONWriter) {
    json.member("description", describe(parameter))
    switch parameter.kind {
    case .string, .path: json.member("type", "string")
    default:
      json.anyOf { json in json.object { write(parameter.kind, to: &$0) } }
    }
    if let value = parameter.defaultValue { json.member("default", of: value) }
  }

  /// The description of a parameter with what an editor does not show by itself: unit, range, whether it is live.
  private static func describe(_ parameter: ParameterContract) -> String {
    var sentences = [parameter.text]
    if let limits = parameter.limits {
      sentences.append("Range: \(limits).")
    } else if !parameter.unit.isEmpty {
      sentences.append("Unit: \(parameter.unit).")
    }
    if parameter.isLive { sentences.append("Can be set while the graph runs.") }
    if let secrecy = parameter.secrecyDescription {
      sentences.append("\(secrecy.prefix(1).uppercased())\(secrecy.dropFirst()).")
    }
    return sentences.map { text in
      text.isEmpty || ".!?".contains(text.last!) ? text : text + "."
    }.joined(separator: " ")
  }

  /// Type and range of a value without placeholder.
  private static func write(_ kind: ParameterContract.Kind, to json: inout JSONWriter) {
    switch kind {
    case .bool: json.member("type", "boolean")
    case .integer(let range):
      json.member("type", "integer")
      if range.lowerBound != .min { json.member("minimum", range.lowerBound) }
      if range.upperBound != .max { json.member("maximum", range.upperBound) }
    case .number(let range):
      json.member("type", "number")
      if range.lowerBound > -Double.greatestFiniteMagnitude { json.number("minimum", range.lowerBound) }
      if range.upperBound < Double.greatestFiniteMagnitude { json.number("maximum", range.upperBound) }
    case .string, .path: json.member("type", "string")
    case .choice(let choices): json.strings("enum", choices)
    case .list(let item, let count):
      json.member("type", "array")
      if count.lowerBound > 0 { json.member("minItems", count.lowerBound) }
      if count.upperBound < .max { json.member("maxItems", count.upperBound) }
      json.object("items") { json in
        json.anyOf { json in json.object { write(item, to: &$0) } }
      }
    }
  }
}

// MARK: - Keywords of JSON Schema

extension JSONWriter {
  mutating func strings(_ key: String, _ values: [String]) {
    array(key) { json in for value in values { json.value(value) } }
  }

  /// A property of a plain type.
  mutating func property(_ key: String, _ type: String, _ text: String) {
    object(key) { json in
      json.member("description", text)
      json.member("type", type)
    }
  }

  /// A property with a shared definition.
  mutating func reference(_ key: String, _ definition: String, _ text: String) {
    object(key) { json in
      json.member("description", text)
      json.member("$ref", "#/$defs/\(definition)")
    }
  }

  /// A property that is one of some words, or a placeholder.
  mutating func choice(_ key: String, _ words: [String], _ text: String, default defaultValue: String) {
    object(key) { json in
      json.member("description", text)
      json.anyOf { $0.words(words) }
      json.member("default", defaultValue)
    }
  }

  /// A value in one of some forms, or a placeholder.
  mutating func anyOf(_ forms: (inout JSONWriter) -> Void) {
    array("anyOf") { json in
      forms(&json)
      json.object { $0.member("$ref", "#/$defs/placeholder") }
    }
  }

  mutating func words(_ words: [String]) {
    object { $0.strings("enum", words) }
  }

  mutating func integer(in range: ClosedRange<Int>) {
    object { json in
      json.member("type", "integer")
      json.member("minimum", range.lowerBound)
      json.member("maximum", range.upperBound)
    }
  }

  mutating func text(matching pattern: String) {
    object { json in
      json.member("type", "string")
      json.member("pattern", pattern)
    }
  }

  /// A number; an integer is written without `.0`.
  mutating func number(_ key: String, _ value: Double) {
    if let whole = Int(exactly: value) { member(key, whole) } else { member(key, value) }
  }

  mutating func member(_ key: String, of value: ParameterValue) {
    self.key(key)
    self.value(of: value)
  }

  /// Writes a parameter's value; an integer is written without `.0`.
  package mutating func value(of value: ParameterValue) {
    switch value {
    case .bool(let flag): self.value(flag)
    case .integer(let number): self.value(number)
    case .number(let number):
      if let whole = Int(exactly: number) { self.value(whole) } else { self.value(number) }
    case .string(let text): self.value(text)
    case .list(let values): array { json in for item in values { json.value(of: item) } }
    }
  }
}
