internal import MillraceCore
internal import MillraceDialog

/// Translates keys into actions. Pure: the caller passes the time, so it can be tested.
///
/// Terminals do not report that a key is released. So the space bar starts talking, and the next press stops it. When the bar is held
/// down, it repeats, and talking stops when the repeats stop.
///
/// Keys trigger actions while no text is being typed. Any letter except `i` and `q` starts a text; Tab starts one that can begin with
/// those.
struct TalkKeyHandler {
  enum Action: Equatable {
    case press, release, tap, interrupt, leave
    /// A text was entered.
    case line(String)
    /// The key has no effect in this mode; the text explains why.
    case hint(String)
  }

  /// The state of the space bar.
  private enum SpaceBar: Equatable {
    case up, down
    /// A second press or the first repeat: not known yet which.
    case ambiguous(since: Nanoseconds)
    case held(last: Nanoseconds)
  }

  /// Keys repeat 10 to 40 times a second, first after 250 ms to 1 s. A network may delay a repeat.
  static let repeatGap: Nanoseconds = .milliseconds(200)
  /// Longest text in characters.
  static let maxLength = 4_000

  let mode: DialogMode
  /// The text being typed; nil when keys trigger actions.
  private(set) var typed: String?
  private var bar = SpaceBar.up

  init(_ mode: DialogMode) { self.mode = mode }

  var isPressed: Bool { bar != .up }

  /// Call regularly: the space bar may have been released.
  mutating func tick(_ now: Nanoseconds) -> [Action] {
    switch bar {
    case .ambiguous(let since) where now - since > Self.repeatGap: return release()
    case .held(let last) where now - last > Self.repeatGap: return release()
    default: return []
    }
  }

  mutating func handle(_ key: TalkKey, at now: Nanoseconds) -> [Action] {
    let late = tick(now)
    return late + (typed == nil ? act(key, now) : type(key))
  }

  /// Releases the button without an action, because the turn has ended.
  mutating func reset() { bar = .up }

  private mutating func release() -> [Action] {
    bar = .up
    return [.release]
  }

  private mutating func act(_ key: TalkKey, _ now: Nanoseconds) -> [Action] {
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

  private mutating func space(_ now: Nanoseconds) -> [Action] {
    guard mode == .pushToTalk else {
      let cure = mode == .duplex ? "just speak" : "press Enter, then speak"
      return [.hint("the space bar has no effect in this mode: \(cure)")]
    }
    switch bar {
    case .up:
      bar = .down
      return [.press]
    case .down: bar = .ambiguous(since: now)
    case .ambiguous, .held: bar = .held(last: now)
    }
    return []
  }

  private mutating func type(_ key: TalkKey) -> [Action] {
    let text = typed ?? ""
    switch key {
    case .character(let character): typed = text.count < Self.maxLength ? text + String(character) : text
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
