import MillraceCore
import MillraceDialog
import MillraceJSON
import Synchronization

/// A session, with one input per line: a line with a brace first is a text of the cloud; any other is chosen by its first byte, and may have
/// numbers, an event or a command behind it.
///
/// Besides what `SessionWatch` requires, the session must keep to the order that the cloud expects: see `SessionOrder`.
enum SessionChecks {
  private static let second: Nanoseconds = 1_000_000_000
  /// From one input of a `SessionWatch` to the next.
  private static let step: Nanoseconds = 10_000_000
  /// The most lines of an input: more show little that is new, and take long.
  private static let mostLines = 60

  /// The first byte holds more settings.
  static func take(_ bytes: ArraySlice<UInt8>, _ settings: UInt8) {
    guard let first = bytes.first else { return }
    let ids = IDs()
    var watch = SessionWatch(TuyaSession(rules(first, settings)) { ids.next() })
    var order = SessionOrder()
    var next = step
    func take(_ input: TuyaInput) {
      order.note(input, watch.session)
      order.check(watch.take(input), of: input)
      next += step
    }
    for line in bytes.dropFirst().split(separator: 0x0A, maxSplits: mostLines).prefix(mostLines) {
      guard let input = input(line) else { continue }
      // What is due has nothing to do with the input.
      while let deadline = watch.session.deadline, deadline <= next { take(.tick) }
      take(input)
    }
    watch.advance { actions, _ in order.check(actions, of: .tick) }
  }

  /// The ids of sessions and events: `1e`, `2e` and so on, of which none begins with another.
  private final class IDs: Sendable {
    private let count = Atomic<Int>(0)
    func next() -> String { "\(count.add(1, ordering: .relaxed).newValue)e" }
  }

  private static func rules(_ first: UInt8, _ settings: UInt8) -> TuyaRules {
    let mode: DialogMode = [.duplex, .pushToTalk, .tapToTalk, .duplex][Int(settings & 3)]
    var rules = TuyaRules(mode, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
    if settings & 3 == 3 { rules.speech = .single }
    rules.followsPlayback = settings & 4 == 0
    rules.waitsAfterEnd = settings & 8 != 0
    rules.postsRaw = settings & 16 != 0
    // So that an input can have more than fits.
    rules.room = TuyaFrameRoom(maxFragment: 1_024)
    rules.vad = first & 1 == 0
    rules.interrupt = first & 2 == 0
    rules.onlyASR = first & 4 != 0
    rules.pictures = first & 8 != 0 ? .video : .image
    rules.tools = first & 16 == 0 ? tools : nil
    rules.sendsSilenceAfterEnd = first & 32 == 0
    rules.linger = first & 64 != 0 ? second : 0
    rules.renew = first & 128 != 0 ? second : 0
    return rules
  }

  private static let tools = try? TuyaTools([["name": "lamp", "inputSchema": ["type": "object"]]])

  // MARK: Inputs

  private static let loss = DialogError.tuya(.sendFailed, "gone", reaction: .reconnect)

  private static func input(_ line: ArraySlice<UInt8>) -> TuyaInput? {
    guard let first = line.first else { return nil }
    let rest = line.dropFirst()
    switch first {
    case UInt8(ascii: "{"): return text(Array(line))
    case UInt8(ascii: "b"): return .audio
    case UInt8(ascii: "i"): return .image
    case UInt8(ascii: "h"): return .imageHeld
    case UInt8(ascii: "V"): return .voiceBegan
    case UInt8(ascii: "g"): return .voiceEnded
    case UInt8(ascii: "I"): return .invalidMessage("invalid")
    case UInt8(ascii: "r"): return .lost(.tuya(closedWith: TuyaStatus(rawValue: number(rest))))
    default: break
    }
    return notice(first, rest).map { .message($0) } ?? SessionWatch<TuyaSession>.input(line, loss: loss)
  }

  private static func notice(_ first: UInt8, _ rest: ArraySlice<UInt8>) -> TuyaNotice? {
    let status = TuyaStatus(rawValue: number(rest))
    let call = Int(number(rest))
    switch first {
    case UInt8(ascii: "C"): return .connected(id: "c", terms(rest))
    case UInt8(ascii: "K"): return .token(terms(rest.drop { $0 != 0x20 }.dropFirst()), to: call)
    case UInt8(ascii: "k"): return .tokenFailed(problem(rest), to: call)
    case UInt8(ascii: "w"): return .tokenWillExpire(in: Nanoseconds(number(rest)) * second)
    case UInt8(ascii: "x"): return .tokenExpired
    case UInt8(ascii: "A"): return .sessionAnswered(status)
    case UInt8(ascii: "X"): return .sessionClosed(status)
    case UInt8(ascii: "Z"): return .sessionState(status)
    case UInt8(ascii: "W"): return .willDisconnect
    case UInt8(ascii: "E"): return .event(event(rest))
    case UInt8(ascii: "B"): return .streamBegan(stream(rest.first))
    case UInt8(ascii: "e"): return .streamEnded(kind(rest.first))
    case UInt8(ascii: "u"): return .unreadableText("unreadable")
    case UInt8(ascii: "F"): return .file(path: "/f", name: "f", kind: kind(rest.first))
    case UInt8(ascii: "p"): return .progress(DialogProgress("upload", command: "\(call)", bytes: 1))
    case UInt8(ascii: "y"): return .sent(call: call)
    case UInt8(ascii: "n"): return .failed(loss, call: call)
    case UInt8(ascii: "U"): return .unknown(["packet": 77])
    default: return nil
    }
  }

  private static func text(_ line: [UInt8]) -> TuyaInput {
    do throws(TuyaTextProblem) { return .message(.text(try TuyaText(parsing: line))) } catch {
      if error.text.isEmpty { fatalError("an error without a text") }
      return .message(.unreadableText(error.text))
    }
  }

  /// The number at the beginning of a line; 0: none.
  private static func number(_ rest: ArraySlice<UInt8>) -> UInt16 {
    rest.prefix(5).prefix { (0x30...0x39).contains($0) }.reduce(0) { $0 &* 10 &+ UInt16($1 - 0x30) }
  }

  /// Those of a voice agent where nothing follows; otherwise a letter for each channel of the user.
  private static func terms(_ rest: ArraySlice<UInt8>) -> TuyaTerms {
    rest.isEmpty ? TuyaTerms() : TuyaTerms(sends: rest.prefix(8).map { kind($0) })
  }

  private static func problem(_ rest: ArraySlice<UInt8>) -> TuyaTokenProblem {
    TuyaTokenProblem("no token", isFinal: rest.last == UInt8(ascii: "!"))
  }

  private static func kind(_ letter: UInt8?) -> TuyaDataKind {
    switch letter {
    case UInt8(ascii: "v"): .video
    case UInt8(ascii: "i"): .image
    case UInt8(ascii: "f"): .file
    case UInt8(ascii: "t"): .text
    default: .audio
    }
  }

  private static func stream(_ letter: UInt8?) -> TuyaStreamStart {
    switch letter {
    case UInt8(ascii: "v"): .video(TuyaVideoParameters(codec: 3, width: 2, height: 2, fps: 1))
    case UInt8(ascii: "i"): .image(TuyaImageParameters(format: 1, width: 2, height: 2))
    default: .audio(TuyaAudioParameters(.mp3))
    }
  }

  /// Its type, id and data, with spaces between.
  private static func event(_ rest: ArraySlice<UInt8>) -> TuyaCloudEvent {
    let words = rest.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    let id = words.count > 1 ? String(decoding: words[1], as: UTF8.self) : ""
    let data = words.count > 2 ? try? JSONValue(parsing: Array(words[2])) : nil
    return TuyaCloudEvent(TuyaEventType(rawValue: number(rest)), id: id, data: data)
  }
}
