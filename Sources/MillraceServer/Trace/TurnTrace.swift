package import MillraceDialog
internal import MillraceGraph
internal import Tracing

/// Turns of dialogues as OpenTelemetry JSON (OTLP 1, `resourceSpans`), which collectors and trace viewers read from a file.
///
/// Every turn is a trace of its own: the span `turn`, and in it its parts (`TurnTracer`). Ids are hexadecimal, times are strings of nanoseconds since 1970,
/// as https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding has it.
package struct TurnTrace {
  private struct Entry {
    var graph: String
    var epoch: UInt64
    var spans: [TurnSpan]
  }

  private var entries: [Entry] = []
  private let service: String
  private let version: String

  /// A trace without a turn.
  /// - Parameters:
  ///   - service: the name of the program, as `service.name`.
  ///   - version: its version.
  package init(service: String, version: String) {
    self.service = service
    self.version = version
  }

  /// Adds a turn, if more than a moment of it is known.
  /// - Parameters:
  ///   - graph: the graph it was in.
  ///   - epoch: where the graph's time begins, in nanoseconds since 1970.
  package mutating func add(_ turn: Turn, graph: String, epoch: UInt64) {
    let spans = TurnSpan.all(of: turn)
    if !spans.isEmpty { entries.append(Entry(graph: graph, epoch: epoch, spans: spans)) }
  }

  /// The time now, in nanoseconds since 1970.
  package static var now: UInt64 { DefaultTracerClock.now.nanosecondsSinceEpoch }

  /// The trace as one JSON text.
  /// - Parameter random: where ids come from; their bytes must not all be 0.
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
            case .truth(let truth): json.member("boolValue", truth)
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
    // An id of zeros is no id.
    return text.contains { $0 != "0" } ? text : String(repeating: "0", count: bytes * 2 - 1) + "1"
  }
}
