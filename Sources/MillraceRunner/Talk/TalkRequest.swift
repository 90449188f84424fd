internal import MillraceCore

/// What one line asks for, typed or read from a script.
enum TalkRequest: Equatable {
  case ask(String)
  case say(String)
  case image(path: String, words: String)
  /// nil: the other way round.
  case mute(Bool?)
  case press, release, tap, interrupt, leave, help
  /// Goes on when this state has come, when so much time is over, or when another answer was heard.
  case wait(Wait)

  enum Wait: Equatable {
    case state(String)
    case time(Nanoseconds)
    case answer
  }

  /// Why a line means nothing.
  struct Refusal: Error, Equatable {
    var text: String
  }

  static let helpText = """
    /say TEXT: have it said · /image FILE [QUESTION]: show a picture · /mute [on|off] · /press /release /tap · i: interrupt · \
    q: leave · /wait STATE, TIME or answer · anything else is asked
    """

  private static let words = [
    "say", "image", "mute", "press", "release", "tap", "wait", "help", "interrupt", "quit",
  ]

  /// - Parameter isPlain: true where there are no keys: `i` and `q` alone, and an empty line, are what the keys would be.
  init(_ line: String, isPlain: Bool) throws(Refusal) {
    let line = line.trimmed
    if isPlain {
      switch line {
      case "i": self = .interrupt
      case "q": self = .leave
      case "": self = .tap
      default: self = try Self.request(line)
      }
    } else {
      self = try Self.request(line)
    }
  }

  private static func request(_ line: String) throws(Refusal) -> TalkRequest {
    guard line.hasPrefix("/") else { return .ask(line) }
    let word = line.dropFirst().prefix { !$0.isWhitespace }
    let rest = String(line.dropFirst(1 + word.count)).trimmed
    switch word {
    case "say":
      guard !rest.isEmpty else { throw Refusal(text: "/say needs words: /say good morning") }
      return .say(rest)
    case "image": return try image(rest)
    case "mute":
      guard ["", "on", "off"].contains(rest) else { throw Refusal(text: "/mute takes on, off or nothing") }
      return .mute(rest.isEmpty ? nil : rest == "on")
    case "press": return .press
    case "release": return .release
    case "tap": return .tap
    case "interrupt": return .interrupt
    case "quit": return .leave
    case "help": return .help
    case "wait": return .wait(try wait(rest))
    case "not-utf-8": throw Refusal(text: "a line is no text in UTF-8; it was left out")
    default:
      throw Refusal(
        text: "there is no \"/\(word)\"; there are \(words.map { "/\($0)" }.joined(separator: ", "))")
    }
  }

  private static func wait(_ rest: String) throws(Refusal) -> Wait {
    if rest == "answer" { return .answer }
    if let time = TimeSpan.time(rest) { return .time(time) }
    if TalkBoard.states.contains(rest) { return .state(rest) }
    throw Refusal(
      text:
        "/wait takes a time such as 2s, answer, or a state: \(TalkBoard.states.joined(separator: ", "))")
  }

  /// A path as a shell would read it, since that is how terminals give files that are dropped on them: in quotes, or with
  /// backslashes before blanks. What follows is the question.
  private static func image(_ rest: String) throws(Refusal) -> TalkRequest {
    var path = ""
    var quote: Character?
    var isEscaped = false
    var end = rest.endIndex
    for index in rest.indices {
      let sign = rest[index]
      if isEscaped {
        path.append(sign)
        isEscaped = false
      } else if let open = quote {
        if sign == open { quote = nil } else { path.append(sign) }
      } else if sign == "\\" {
        isEscaped = true
      } else if sign == "'" || sign == "\"" {
        quote = sign
      } else if sign.isWhitespace {
        end = index
        break
      } else {
        path.append(sign)
      }
    }
    guard quote == nil else { throw Refusal(text: "a quote is open in the name of the picture; close it") }
    guard !path.isEmpty else { throw Refusal(text: "/image needs a file: /image cat.jpg what is this?") }
    return .image(path: path, words: String(rest[end...]).trimmed)
  }
}

extension String {
  /// Without blanks at both ends.
  var trimmed: String {
    let start = drop { $0.isWhitespace }
    return String(start.reversed().drop { $0.isWhitespace }.reversed())
  }
}
