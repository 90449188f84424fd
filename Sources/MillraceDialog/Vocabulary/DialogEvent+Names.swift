public import MillraceCore

extension DialogEvent {
  /// The word for it in JSON, and the name of the event a service node posts.
  public var name: String { Self.contracts[index].name }

  /// Its place in `contracts`.
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
    }
  }

  /// What a service node's contract says of its events: all of these, in this order, so that the index of one is `index`.
  public static let contracts: [EventContract] = [
    EventContract("connected", text: "connection and login are done"),
    EventContract("conversationStarted", text: "the dialogue has begun: `id`, which continues it later"),
    EventContract("state", text: "the dialogue is in another state: `state`"),
    EventContract("speechStarted", text: "the service hears the user speak"),
    EventContract("speechEnded", text: "the service has heard the user stop"),
    EventContract("transcript", text: "what the user said, all of it so far: `text`, `final`"),
    EventContract(
      "reply",
      text: "a piece of an answer: `text`, `spoken` where other words are heard, `final`, `mode`, `round`"),
    EventContract("replyStarted", text: "the sound of an answer begins to come: `round`"),
    EventContract(
      "replyEnded",
      text: "all of an answer has come: `round`, `utterances` of sound, which may still be playing"),
    EventContract("interrupted", text: "an answer will not go on: `by` user, service or local"),
    EventContract("command", text: "the service asks for something to be done: `name`, `payload`"),
    EventContract(
      "media", text: "something to be shown: `kind`, `url`, `title`, `text`, `options`, `detail`"),
    EventContract("emotion", text: "feelings along with a reply: `steps` of `name`, `startMs`, `endMs`"),
    EventContract("gate", text: "`gate` (muted, uninterruptible) is `on` or not"),
    EventContract("usage", text: "what was used: `usage`, under the vendor's names"),
    EventContract("latency", text: "a time that was measured: `name`, `ms`"),
    EventContract("authWillExpire", text: "the credentials end soon: in `ms`, where it is told"),
    EventContract("authExpired", text: "the credentials have ended"),
    EventContract("kicked", text: "this side was put out: `reason`, `text`"),
    EventContract("peer", text: "somebody else: `id`, `change`, `audio`, `video`, `reason`"),
    EventContract("netQuality", text: "the network: `index`, `grade`, `peer` (absent: this side)"),
    EventContract(
      "error",
      text: "something failed: `vendor`, `code`, `name`, `category`, `reaction`, `afterMs`, `text`"),
    EventContract("extra", text: "something under the vendor's own name: `name`, `payload`"),
    EventContract("unknown", text: "nobody knows what it is: `raw`"),
  ]
}
