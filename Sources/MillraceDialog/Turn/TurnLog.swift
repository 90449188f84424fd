package import MillraceCore

/// One turn of a dialogue: the user speaks, the bot answers.
package struct Turn: Sendable, Hashable {
  /// What may happen in a turn. Any node may post events with these names, whatever else it posts.
  package enum Mark: String, Sendable, Hashable, CaseIterable {
    /// The first sample of the user's speech was heard, and the last.
    case speechStarted, speechEnded
    /// The last of it was sent.
    case sent
    /// The service told that it had heard the end.
    case noticed
    /// The first byte of the answer came.
    case replyStarted
    /// The first sample of it was heard, and the last.
    case replyAudible, replyFinished
    /// The answer was cut off.
    case interrupted

    package var isOfReply: Bool {
      switch self {
      case .speechStarted, .speechEnded, .sent, .noticed: false
      case .replyStarted, .replyAudible, .replyFinished, .interrupted: true
      }
    }
  }

  /// What stands in front of the run's nodes.
  package var label: String
  /// When each happened, on the graph clock.
  package var times: [Mark: Nanoseconds]

  package init(label: String, times: [Mark: Nanoseconds] = [:]) {
    self.label = label
    self.times = times
  }

  /// In the order they happened; marks of the same moment in their natural order.
  package var marks: [(mark: Mark, time: Nanoseconds)] {
    Mark.allCases.compactMap { mark in times[mark].map { (mark, $0) } }.enumerated()
      .sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }.map(\.element)
  }

  package var start: Nanoseconds { times.values.min() ?? 0 }
  package var end: Nanoseconds { times.values.max() ?? 0 }
  package var isOver: Bool { times[.replyFinished] != nil || times[.interrupted] != nil }

  /// From the user's last word to the bot's first: what a user feels.
  package var answerTime: Nanoseconds? {
    guard let spoken = times[.speechEnded], let heard = times[.replyAudible] else { return nil }
    return heard - spoken
  }
}

/// Sorts marks into turns, as they come.
///
/// Speech begins a turn. What concerns an answer belongs to the last turn whose answer has begun and is not over: a user who
/// interrupts is already in the next turn when the answer to the one before ends.
///
/// A detector beside the microphone knows when speech began and ended; a service tells it later, after the way there and its own
/// doubts. Where there is a detector its word counts, and the service's end is when it noticed.
package struct TurnLog: Sendable {
  package private(set) var turns: [Turn] = []
  /// Turns kept; the oldest go.
  package static let capacity = 10_000

  package init() {}

  /// Runs with a detector of their own.
  private var detected: Set<String> = []

  /// - Parameter isDetected: true: a detector heard it, beside the microphone.
  package mutating func add(_ mark: Turn.Mark, at time: Nanoseconds, label: String, isDetected: Bool = false)
  {
    var mark = mark
    if isDetected {
      detected.insert(label)
    } else if detected.contains(label) {
      if mark == .speechStarted { return }
      if mark == .speechEnded { mark = .noticed }
    }
    if mark == .replyStarted, let index = beginning(label) {
      turns[index].times[mark] = min(turns[index].times[mark] ?? time, time)
    } else if let index = place(of: mark, label) {
      turns[index].times[mark] = time
    } else if !Self.joinsOnly.contains(mark) {
      if turns.count == Self.capacity { turns.removeFirst(Self.capacity / 4) }
      turns.append(Turn(label: label, times: [mark: time]))
    }
  }

  /// Marks that are nothing without a turn: several nodes tell of one interruption.
  private static let joinsOnly: Set<Turn.Mark> = [.noticed, .interrupted]

  /// The turn whose answer has begun to come and is not heard yet: several nodes tell of its first byte.
  private func beginning(_ label: String) -> Int? {
    guard let index = turns.lastIndex(where: { $0.label == label }), !turns[index].isOver,
      turns[index].times[.replyStarted] != nil, turns[index].times[.replyAudible] == nil
    else { return nil }
    return index
  }

  private func place(of mark: Turn.Mark, _ label: String) -> Int? {
    if mark == .speechStarted { return nil }
    func latest(_ fits: (Turn) -> Bool) -> Int? {
      turns.lastIndex { $0.label == label && $0.times[mark] == nil && !$0.isOver && fits($0) }
    }
    if mark.isOfReply && mark != .replyStarted, let index = latest({ $0.times[.replyStarted] != nil }) {
      return index
    }
    if mark == .interrupted { return latest { $0.times[.replyAudible] != nil } }
    // Only the newest turn: an older one that lacks the mark never got it.
    return latest { _ in true }.flatMap { index in
      turns.lastIndex { $0.label == label } == index ? index : nil
    }
  }
}

extension TurnLog {
  /// Sorts what an event says of a turn, if it says anything.
  package mutating func add(_ event: TurnEvent?, label: String) {
    guard let event else { return }
    add(event.mark, at: event.time, label: label, isDetected: event.isDetected)
  }

  /// Takes out the turns to which nothing more can come: those that are over, and those that two others have followed.
  /// - Parameter isEnd: true: the dialogue has ended, and all its turns with it.
  package mutating func takeFinished(isEnd: Bool = false) -> [Turn] {
    // One that is still open when a later one is over missed its end.
    let over = turns.lastIndex(where: \.isOver).map { $0 + 1 } ?? 0
    let count = isEnd ? turns.count : max(over, turns.count - 2)
    defer { turns.removeFirst(count) }
    return Array(turns.prefix(count))
  }
}

/// What an event of a node says of a turn.
package struct TurnEvent: Sendable, Hashable {
  /// What happened.
  package var mark: Turn.Mark
  /// When it happened, on the graph clock, which may be before it was posted.
  package var time: Nanoseconds
  /// A detector heard it, beside the microphone.
  package var isDetected = false

  /// - Parameters:
  ///   - name: the event's name.
  ///   - node: the node that posted it; empty for events of the run itself.
  ///   - time: when it was posted, on the graph clock.
  ///   - number: the event's member of a name, where it is a number.
  package init?(name: String, node: String, time: Nanoseconds, number: (String) -> Double?) {
    guard !node.isEmpty else { return nil }
    if let mark = Turn.Mark(rawValue: name) {
      self.mark = mark
      isDetected = number("delay") != nil
      self.time = Self.moment(number) ?? time
    } else if name == "started", let waited = number("waited") {
      // speech.play: the first byte came that long ago.
      mark = .replyStarted
      self.time = time - Nanoseconds((waited * 1e6).rounded())
    } else {
      return nil
    }
  }

  /// When it happened, where the node knows better than the time of its telling: `at` in seconds, or `delay` in milliseconds before.
  private static func moment(_ number: (String) -> Double?) -> Nanoseconds? {
    if let at = number("at") { return Nanoseconds((at * 1e9).rounded()) }
    guard let delay = number("delay"), let time = number("time") else { return nil }
    return Nanoseconds((time * 1e9 - delay * 1e6).rounded())
  }
}
