public import MillraceCore

extension DialogEvent {
  /// Its name in JSON, and in the events a service node posts.
  public var name: String { Self.contracts[index].name }

  /// Its index in `contracts`.
  public var index: Int {
    switch self {
    case .connected: 0
    case .conversationStarted: 1
    case .state: 2
    case .speechStarted: 3
    case .speechEnded: 4
    case .transcript: 5
    case .reply: 6
    case .replyStarted: 7
    case .replyEnded: 8
    case .interrupted: 9
    case .command: 10
    case .media: 11
    case .emotion: 12
    case .gate: 13
    case .usage: 14
    case .latency: 15
    case .authWillExpire: 16
    case .authExpired: 17
    case .kicked: 18
    case .peer: 19
    case .netQuality: 20
    case .error: 21
    case .extra: 22
    case .unknown: 23
    case .answer: 24
    }
  }

  /// The events in the contract of every service node: all of these, in this order, so that the index of an event is `index`.
  public static let contracts: [EventContract] = [
    EventContract("connected", text: "the service is connected and logged in"),
    EventContract("conversationStarted", text: "the dialogue began: `id`, which can resume it later"),
    EventContract("state", text: "the state of the dialogue changed: `state`"),
    EventContract("speechStarted", text: "the service detected that the user started speaking"),
    EventContract("speechEnded", text: "the service detected that the user stopped speaking"),
    EventContract("transcript", text: "what the user said so far, completely: `text`, `final`"),
    EventContract(
      "reply",
      text: "part of a reply: `text`, `spoken` where the audio differs, `final`, `mode`, `round`"),
    EventContract("replyStarted", text: "the audio of a reply begins to arrive: `round`"),
    EventContract(
      "replyEnded",
      text: "a reply has arrived completely: `round`, `utterances` of audio, which may still be playing"),
    EventContract("interrupted", text: "a reply was interrupted: `by` user, service or local"),
    EventContract("command", text: "the service asks for an action: `name`, `payload`"),
    EventContract(
      "media", text: "something to display: `kind`, `url`, `title`, `text`, `options`, `detail`"),
    EventContract("emotion", text: "emotions during a reply: `steps` of `name`, `startMs`, `endMs`"),
    EventContract("gate", text: "`gate` (muted, uninterruptible) is `on` or off"),
    EventContract("usage", text: "resources used: `usage`, under the vendor's names"),
    EventContract("latency", text: "a measured time: `name`, `ms`"),
    EventContract("authWillExpire", text: "the credentials expire soon: in `ms`, if known"),
    EventContract("authExpired", text: "the credentials have expired"),
    EventContract("kicked", text: "this client was removed: `reason`, `text`"),
    EventContract("peer", text: "another participant: `id`, `change`, `audio`, `video`, `reason`"),
    EventContract("netQuality", text: "network quality: `index`, `grade`, `peer` (absent: this client)"),
    EventContract(
      "error",
      text: "an error: `vendor`, `code`, `name`, `category`, `reaction`, `afterMs`, `scope`, `detail`, `text`"
    ),
    EventContract("extra", text: "a vendor's own event: `name`, `payload`"),
    EventContract("unknown", text: "an unknown message: `raw`"),
    EventContract(
      "answer",
      text: "what came of the command with this `id`: `ok`, and its `payload` or the members of an error"),
  ]
}
