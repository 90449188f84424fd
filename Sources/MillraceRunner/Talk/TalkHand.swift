internal import MillraceCore
internal import MillraceDialog

/// The user's hand: what keys mean. Pure; told the time, so that it can be tested.
///
/// A terminal tells of no key that comes up, so the space bar has a rule: it begins to talk, and the next press of it ends that.
/// Held down, it repeats: it ends when the repeats do.
///
/// Keys act while nothing is being typed. Any letter but `i` and `q` begins a text, and tab begins one that starts with those.
struct TalkHand {
  enum Act: Equatable {
    case press, release, tap, interrupt, leave
    /// A text was typed and sent.
    case line(String)
    /// A key that does nothing here, with the reason.
    case hint(String)
  }

  /// Where the space bar is.
  private enum Bar: Equatable {
    case up, down
    /// A second press has come, or the first repeat: it is not known yet which.
    case doubtful(since: Nanoseconds)
    case held(last: Nanoseconds)
  }

  /// Repeats come 10 to 40 times a second, the first after a quarter of a second to one. A network may hold one up.
  static let repeatGap: Nanoseconds = .milliseconds(200)
  /// Characters of a text.
  static let longest = 4_000

  let mode: DialogMode
  /// What is being typed; nil: keys act.
  private(set) var typed: String?
  private var bar = Bar.up

  init(_ mode: DialogMode) { self.mode = mode }

  var isPressed: Bool { bar != .up }

  /// Time has gone by: the space bar may have come up.
  mutating func tick(_ now: Nanoseconds) -> [Act] {
    switch bar {
    case .doubtful(let since) where now - since > Self.repeatGap: return release()
    case .held(let last) where now - last > Self.repeatGap: return release()
    default: return []
    }
  }

  mutating func take(_ key: TalkKey, at now: Nanoseconds) -> [Act] {
    let late = tick(now)
    return late + (typed == nil ? act(key, now) : type(key))
  }

  /// The turn is over elsewhere: the button is up, wherever the space bar is.
  mutating func lift() { bar = .up }

  private mutating func release() -> [Act] {
    bar = .up
    return [.release]
  }

  private mutating func act(_ key: TalkKey, _ now: Nanoseconds) -> [Act] {
    switch key {
    case .character(" "): return space(now)
    case .character("i"): return [.interrupt]
    case .character("q"), .end: return [.leave]
    case .character(let character): typed = String(character)
    case .tab: typed = ""
    case .enter: return mode == .tapToTalk ? [.tap] : []
    case .backspace, .erase: break
    }
    return []
  }

  private mutating func space(_ now: Nanoseconds) -> [Act] {
    guard mode == .pushToTalk else {
      let words = mode == .duplex ? "just speak" : "press enter, then speak"
      return [.hint("there is nothing to hold here: \(words)")]
    }
    switch bar {
    case .up:
      bar = .down
      return [.press]
    case .down: bar = .doubtful(since: now)
    case .doubtful, .held: bar = .held(last: now)
    }
    return []
  }

  private mutating func type(_ key: TalkKey) -> [Act] {
    let text = typed ?? ""
    switch key {
    case .character(let character): typed = text.count < Self.longest ? text + String(character) : text
    case .backspace: typed = text.count > 1 ? String(text.dropLast()) : nil
    case .erase: typed = nil
    case .enter:
      typed = nil
      return text.allSatisfy(\.isWhitespace) ? [] : [.line(text)]
    case .tab, .end: break
    }
    return []
  }
}
