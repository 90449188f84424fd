internal import MillraceCore
internal import MillraceDialog
public import MillraceEngine
public import Tracing

/// Hands the turns of dialogues to a tracer of swift-distributed-tracing: a span for each turn, with a child for each part of it.
///
/// Spans are made when a turn is over, with the times at which things happened: speech by a detector's word where there is one, the reply by
/// what was heard and not by what came. Names are `turn`, `speech`, `send`, `recognise`, `think`, `buffer`, `reply`; attributes
/// `millrace.graph`, `millrace.run`, `millrace.turn.answer_seconds`, `millrace.turn.interrupted`. What was said is in none of them.
/// For graphs on the real-time clock.
public struct TurnTracer: Sendable {
  private let chosen: (any Tracer)?

  /// - Parameter tracer: where spans go; nil: what the program has chosen by `InstrumentationSystem.bootstrap`.
  public init(_ tracer: (any Tracer)? = nil) { chosen = tracer }

  /// Makes spans of the turns that the events tell of, until the run has stopped or the task is cancelled.
  /// - Parameters:
  ///   - events: of the run; ask for them before the run starts.
  ///   - run: what the spans are marked with.
  public func follow(_ events: GraphEvents, of run: GraphRun) async {
    let tracer = chosen ?? InstrumentationSystem.tracer
    var log = TurnLog()
    var epoch: UInt64?
    for await event in events {
      // Where the graph's time begins on the wall: one offset for the whole run, so that spans never overlap by a clock that was set.
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
  /// What an event says of a turn; nil: nothing.
  fileprivate init?(_ event: GraphEvent) {
    // Only the few events that concern a turn are read.
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
    case .truth(let truth): self = .bool(truth)
    }
  }
}
