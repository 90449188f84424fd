package import MillraceDialog
internal import MillraceGraph
internal import Tracing

/// The turns of dialogues as OpenTelemetry JSON (OTLP 1, `resourceSpans`), which collectors and trace viewers read from a file.
///
/// Each turn is a trace: the span `turn`, with its parts as children (`TurnTracer`). Ids are hexadecimal, and times are strings of
/// nanoseconds since 1970, as specified in https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
package struct TurnTrace {
  private struct Entry {
    var graph: String
    var epoch: UInt64
    var spans: [TurnSpan]
  }

  private var entries: [Entry] = []
  private let service: String
  private let version: String

  /// Creates a trace without turns.
  /// - Parameters:
  ///   - service: name of the program, as `service.name`.
  ///   - version: version of the program.
  package init(service: String, version: String) {
    self.service = service
    self.version = version
  }

  /// Adds a turn when more than one of its times is known.
  /// - Parameters:
  ///   - graph: name of the graph.
  ///   - epoch: graph time 0, in nanoseconds since 1970.
  package mutating func add(_ turn: Turn, graph: String, epoch: UInt64) {
    let spans = TurnSpan.all(of: turn)
    if !spans.isEmpty { entries.append(Entry(graph: graph, epoch: epoch, spans: spans)) }
  }

  /// The current time, in nanoseconds since 1970.
  package static var now: UInt64 { DefaultTracerClock.now.nanosecondsSinceEpoch }

  /// The trace as one JSON document.
  /// - Parameter random: generates the ids.
  package func json(random: inout some RandomNumberGenerator) -> String {
    var json = JSONWriter()
    json.object { json in
      json.key("resourceSpans")
      json.array { json in
        json.object { json in
          json.key("resource")
          json.object { json in
            Self.write(
              [("service.name", .text(service)), ("service.version", .text(version))], to: &json)
          }
          json.key("scopeSpans")
          json.array { json in
            json.object { json in
              json.key("scope")
              json.object { $0.member("name", "millrace") }
              json.key("spans")
              json.array { json in for entry in entries { Self.write(entry, to: &json, &random) } }
            }
          }
        }
      }
    }
    return json.text + "\n"
  }

  private static func write(
    _ entry: Entry, to json: inout JSONWriter, _ random: inout some RandomNumberGenerator
  ) {
    let trace = id(of: 16, &random)
    var root = ""
    for (index, span) in entry.spans.enumerated() {
      let id = id(of: 8, &random)
      json.object { json in
        json.member("traceId", trace)
        json.member("spanId", id)
        if index > 0 { json.member("parentSpanId", root) }
        json.member("name", span.name)
        // SPAN_KIND_INTERNAL
        json.member("kind", 1)
        json.member("startTimeUnixNano", String(entry.epoch &+ UInt64(max(0, span.start))))
        json.member("endTimeUnixNano", String(entry.epoch &+ UInt64(max(0, span.end))))
        let attributes = span.attributes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let graph: [(String, TurnSpan.Value)] = index == 0 ? [("millrace.graph", .text(entry.graph))] : []
        write(graph + attributes, to: &json)
      }
      if index == 0 { root = id }
    }
  }

  private static func write(_ attributes: [(String, TurnSpan.Value)], to json: inout JSONWriter) {
    guard !attributes.isEmpty else { return }
    json.key("attributes")
    json.array { json in
      for (name, value) in attributes {
        json.object { json in
          json.member("key", name)
          json.key("value")
          json.object { json in
            switch value {
            case .text(let text): json.member("stringValue", text)
            case .number(let number): json.member("doubleValue", number)
            case .bool(let value): json.member("boolValue", value)
            }
          }
        }
      }
    }
  }

  private static func id(of bytes: Int, _ random: inout some RandomNumberGenerator) -> String {
    let digits = Array("0123456789abcdef")
    var text = ""
    for _ in 0..<bytes * 2 { text.append(digits[Int.random(in: 0..<16, using: &random)]) }
    // An id of only zeros is invalid.
    return text.contains { $0 != "0" } ? text : String(repeating: "0", count: bytes * 2 - 1) + "1"
  }
}
