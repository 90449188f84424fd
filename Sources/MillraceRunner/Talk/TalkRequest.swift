internal import MillraceCore

/// The request of one line, typed or read from a script.
enum TalkRequest: Equatable {
  case ask(String)
  case say(String)
  case image(path: String, question: String)
  /// nil toggles.
  case mute(Bool?)
  case press, release, tap, interrupt, leave, help
  /// Waits for a state, for a time, or until another reply has been heard.
  case wait(Wait)

  enum Wait: Equatable {
    case state(String)
    case time(Nanoseconds)
    case answer
  }

  /// Why a line is invalid.
  struct ParseError: Error, Equatable {
    var text: String
  }

  static let helpText = """
    /say TEXT: speak a text · /image FILE [QUESTION]: send a picture · /mute [on|off] · /press /release /tap · i: interrupt · \
    q: quit · /wait STATE, TIME or answer (in scripts) · any other text is sent as a question
    """

  private static let words = [
    "say", "image", "mute", "press", "release", "tap", "wait", "help", "interrupt", "quit",
  ]

  /// - Parameter isPlain: true when there are no keys: the lines `i` and `q` and an empty line then act like the keys.
  init(_ line: String, isPlain: Bool) throws(ParseError) {
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

  private static func request(_ line: String) throws(ParseError) -> TalkRequest {
    guard line.hasPrefix("/") else { return .ask(line) }
    let word = line.dropFirst().prefix { !$0.isWhitespace }
    let rest = String(line.dropFirst(1 + word.count)).trimmed
    switch word {
    case "say":
      guard !rest.isEmpty else { throw ParseError(text: "/say needs a text, such as: /say good morning") }
      return .say(rest)
    case "image": return try image(rest)
    case "mute":
      guard ["", "on", "off"].contains(rest) else {
        throw ParseError(text: "invalid argument of /mute; write /mute, /mute on or /mute off")
      }
      return .mute(rest.isEmpty ? nil : rest == "on")
    case "press": return .press
    case "release": return .release
    case "tap": return .tap
    case "interrupt": return .interrupt
    case "quit": return .leave
    case "help": return .help
    case "wait": return .wait(try wait(rest))
    case "not-utf-8": throw ParseError(text: "skipped a line that is not valid UTF-8")
    case "too-long": throw ParseError(text: "skipped a line that is too long")
    default:
      throw ParseError(
        text:
          "unknown command \"/\(word)\"; the commands are \(words.map { "/\($0)" }.joined(separator: ", "))"
      )
    }
  }

  private static func wait(_ rest: String) throws(ParseError) -> Wait {
    if rest == "answer" { return .answer }
    if let time = TimeSpan.time(rest) { return .time(time) }
    if TalkModel.states.contains(rest) { return .state(rest) }
    throw ParseError(
      text:
        "invalid argument of /wait; write a time such as 2s, answer, or a state: \(TalkModel.states.joined(separator: ", "))"
    )
  }

  /// Parses a path as a shell does, in quotes or with backslashes before spaces, because terminals insert files dropped on them in this form.
  /// The rest of the line is the question.
  private static func image(_ rest: String) throws(ParseError) -> TalkRequest {
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
    guard quote == nil else { throw ParseError(text: "unterminated quote in the file name; close it") }
    guard !path.isEmpty else {
      throw ParseError(text: "/image needs a file, such as: /image cat.jpg what is this?")
    }
    return .image(path: path, question: String(rest[end...]).trimmed)
  }
}

extension String {
  /// Without white space at both ends.
  var trimmed: String {
    let start = drop { $0.isWhitespace }
    return String(start.reversed().drop { $0.isWhitespace }.reversed())
  }
}
