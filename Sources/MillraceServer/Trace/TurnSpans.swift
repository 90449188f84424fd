package import MillraceCore
package import MillraceDialog

/// One span of a turn: the turn itself, or a part of it.
///
/// ```
/// turn      ├──────────────────────────────────────────────────────┤
/// speech    ├────────────┤                     the user speaks
/// send                   ├──┤                  until the last of it was sent
/// recognise              ├────────┤            until the service noticed the end (with a detector of our own)
/// think                           ├──────┤     until the first byte of the reply
/// buffer                                 ├──┤  until its first sample was heard
/// reply                                     ├──────────────────────┤
/// ```
/// `think` begins at the latest of end of speech, sent and noticed. A part is omitted when its beginning or end was not reported.
package struct TurnSpan: Sendable, Hashable {
  /// The value of an attribute.
  package enum Value: Sendable, Hashable {
    case text(String)
    case number(Double)
    case bool(Bool)
  }

  package var name: String
  /// On the graph clock.
  package var start: Nanoseconds
  package var end: Nanoseconds
  package var attributes: [String: Value] = [:]

  /// The spans of a turn, starting with the turn itself; empty when only one of its times is known.
  package static func all(of turn: Turn) -> [TurnSpan] {
    guard turn.times.count > 1 else { return [] }
    var root = TurnSpan(name: "turn", start: turn.start, end: turn.end)
    root.attributes["millrace.turn.interrupted"] = .bool(turn.times[.interrupted] != nil)
    if let time = turn.answerTime {
      root.attributes["millrace.turn.answer_seconds"] = .number(Double(time) / 1e9)
    }
    let times = turn.times
    let asked = [times[.speechEnded], times[.sent], times[.noticed]].compactMap(\.self).max()
    let ended = [times[.replyFinished], times[.interrupted]].compactMap(\.self).max()
    let parts: [(String, Nanoseconds?, Nanoseconds?)] = [
      ("speech", times[.speechStarted], times[.speechEnded]),
      ("send", times[.speechEnded], times[.sent]),
      ("recognise", times[.speechEnded], times[.noticed]),
      ("think", asked, times[.replyStarted]),
      ("buffer", times[.replyStarted], times[.replyAudible]),
      ("reply", times[.replyAudible], ended),
    ]
    return [root]
      + parts.compactMap { name, start, end -> TurnSpan? in
        guard let start, let end, end >= start else { return nil }
        return TurnSpan(name: name, start: start, end: end)
      }
  }
}
