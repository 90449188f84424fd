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
    case .call: 25
    case .role: 26
    case .track: 27
    case .level: 28
    case .speaking: 29
    case .device: 30
    case .progress: 31
    case .data: 32
    }
  }

  /// The events in the contract of every service node: all of these, in this order, so that the index of an event is `index`.
  public static let contracts: [EventContract] = [
    EventContract("connected", text: "the service is connected and logged in"),
    EventContract("conversationStarted", text: "the dialogue began: `id`, which can resume it later"),
    EventContract("state", text: "the state of the dialogue changed: `state`"),
    EventContract("speechStarted", text: "the service detected that the user started speaking"),
    EventContract("speechEnded", text: "the service detected that the user stopped speaking"),
    EventContract("transcript", text: "what the user said so far, completely: `text`, `final`, `round`"),
    EventContract(
      "reply",
      text: "part of a reply: `text`, `spoken` where the audio differs, `final`, `mode`, `round`"),
    EventContract("replyStarted", text: "the audio of a reply begins to arrive: `round`"),
    EventContract(
      "replyEnded",
      text: "a reply has arrived completely: `round`, `utterances` of audio, which may still be playing"),
    EventContract("interrupted", text: "a reply was interrupted: `by` user, service or local; `round`"),
    EventContract("command", text: "the service asks for an action: `name`, `payload`, `round`"),
    EventContract(
      "media",
      text: "something to display: `kind`, `url`, `name`, `title`, `text`, `options`, `detail`, `round`"),
    EventContract("emotion", text: "emotions during a reply: `steps` of `name`, `startMs`, `endMs`; `round`"),
    EventContract("gate", text: "`gate` (muted, uninterruptible) is `on` or off; `round`"),
    EventContract("usage", text: "resources used: `usage`, under the vendor's names"),
    EventContract("latency", text: "a measured time: `name`, `ms`"),
    EventContract("authWillExpire", text: "the credentials expire soon: in `ms`, if known"),
    EventContract("authExpired", text: "the credentials have expired"),
    EventContract("kicked", text: "this client was removed: `reason`, `text`"),
    EventContract(
      "peer",
      text: "another participant: `id`, `change`, `name`, `audio`, `video`, `screen`, `elapsedMs`, `reason`"),
    EventContract(
      "netQuality",
      text: """
        network quality: `index`, `grade`, `peer` (absent: this client), and as measured `lossPct`, `rttMs`, `rttMinMs`, `rttMaxMs`, \
        `mdevMs`, `jitterMs`
        """),
    EventContract(
      "error",
      text: """
        an error: `vendor`, `code`, `name`, `category`, `reaction`, `afterMs`, `scope`, `detail`, `round`, `text`
        """),
    EventContract("extra", text: "a vendor's own event: `name`, `payload`"),
    EventContract("unknown", text: "an unknown message: `raw`"),
    EventContract(
      "answer",
      text: "what came of the command with this `id`: `ok`, and its `payload` or the members of an error"),
    EventContract(
      "call",
      text: "a call: `id`, `change`, `by`, `media`, `message`, `accepted` (of elsewhere), `reason`"),
    EventContract("role", text: "this client has another role in the room: `role`"),
    EventContract(
      "track",
      text:
        "a `track` of this client (audio, video, screen, data) is ready, published, sending or unpublished: `change`"
    ),
    EventContract("level", text: "how loud this client or a `peer` is: `dBov`, 0 the loudest"),
    EventContract("speaking", text: "who speaks now: `peers` with `peer` and `dBov`; empty: nobody"),
    EventContract(
      "device", text: "a device of this machine: `kind`, `change`, `name`, `code`, `text`"),
    EventContract(
      "progress",
      text: "a long operation: `name`, `command` that began it, `done` from 0 to 1, `bytes`, `totalBytes`"),
    EventContract("data", text: "a message of a participant: `peer`, `label`, `text` or `base64`"),
  ]
}
