internal import MillraceCore
internal import MillraceDialog
public import MillraceEngine
internal import MillraceJSON
public import Tracing

/// Traces the turns of dialogues through swift-distributed-tracing: a span for each turn, with a child span for each of its parts.
///
/// Spans are created when a turn is over, with the times at which things happened: speech as a detector reports it, if the graph has one,
/// and the reply as it was heard, not as it arrived. Names: `turn`, `speech`, `send`, `recognise`, `think`, `buffer`, `reply`. Attributes:
/// `millrace.graph`, `millrace.run`, `millrace.turn.answer_seconds`, `millrace.turn.interrupted`. Spans never contain what was said.
/// For graphs on the real-time clock.
public struct TurnTracer: Sendable {
  private let chosen: (any Tracer)?

  /// Creates a tracer of turns.
  /// - Parameter tracer: receives the spans; nil for the one set with `InstrumentationSystem.bootstrap`.
  public init(_ tracer: (any Tracer)? = nil) { chosen = tracer }

  /// Traces the turns that a run's events describe, until the run has stopped or the task is cancelled.
  /// - Parameters:
  ///   - events: the run's events; subscribe before the run starts.
  ///   - run: the run whose name and number the spans have.
  public func follow(_ events: GraphEvents, of run: GraphRun) async {
    let tracer = chosen ?? InstrumentationSystem.tracer
    var log = TurnLog()
    var epoch: UInt64?
    for await event in events {
      // Wall-clock time of graph time 0. One offset for the whole run, so that spans stay in order when the clock is set.
      let start =
        epoch ?? DefaultTracerClock.now.nanosecondsSinceEpoch &- UInt64(max(0, run.time.nanoseconds))
      epoch = start
      log.add(TurnEvent(event), label: "")
      for turn in log.takeFinished() { emit(turn, run, start, tracer) }
    }
    guard let epoch else { return }
    for turn in log.takeFinished(isEnd: true) { emit(turn, run, epoch, tracer) }
  }

  private func emit(_ turn: Turn, _ run: GraphRun, _ epoch: UInt64, _ tracer: any Tracer) {
    func instant(_ time: Nanoseconds) -> DefaultTracerClock.Timestamp {
      DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: epoch &+ UInt64(max(0, time)))
    }
    let spans = TurnSpan.all(of: turn)
    guard let first = spans.first else { return }
    let root = tracer.startSpan(first.name, context: .topLevel, ofKind: .internal, at: instant(first.start))
    root.updateAttributes { attributes in
      attributes.set("millrace.graph", value: .string(run.name))
      attributes.set("millrace.run", value: .int64(Int64(run.id)))
      for (name, value) in first.attributes { attributes.set(name, value: SpanAttribute(value)) }
    }
    for span in spans.dropFirst() {
      tracer.startSpan(span.name, context: root.context, ofKind: .internal, at: instant(span.start))
        .end(at: instant(span.end))
    }
    root.end(at: instant(first.end))
  }
}

extension TurnEvent {
  /// nil when the event does not concern a turn.
  fileprivate init?(_ event: GraphEvent) {
    // The JSON of other events is not parsed.
    guard Turn.Mark(rawValue: event.name) != nil || event.name == "started" else { return nil }
    let value = try? JSONValue(parsing: event.json)
    self.init(
      name: event.name, node: event.node, time: event.time, number: { value?[$0]?.double })
  }
}

extension SpanAttribute {
  fileprivate init(_ value: TurnSpan.Value) {
    switch value {
    case .text(let text): self = .string(text)
    case .number(let number): self = .double(number)
    case .bool(let value): self = .bool(value)
    }
  }
}
