public import MillraceCore
public import MillraceDialog

/// An input of a session.
public typealias BailianInput = ServiceInput<BailianMessage>
/// An action a session asks for.
public typealias BailianAction = ServiceAction<BailianRequest>

/// The rules of a session.
public struct BailianRules: Sendable, Hashable {
  /// The content of the message `Start`, with mode and formats.
  public var start: BailianStart
  /// True: playback reports what was heard, and the service is informed of it. False: delivered audio counts as heard.
  public var followsPlayback = true
  /// When to open the video channel.
  public var live = Live.command
  /// Backoff, and when to give up.
  public var reconnect: ReconnectPolicy

  /// Interval of heartbeats. The vendor's gateway closes after 60 s without a message from the service, and 50 s are recommended.
  public var heartBeat: Nanoseconds = .milliseconds(20_000)
  /// Timeout from the opening of the WebSocket to the first Listening.
  public var begin: Nanoseconds = .milliseconds(10_000)
  /// Longest time without any message from the service, heartbeats included.
  public var silence: Nanoseconds = .milliseconds(50_000)
  /// Longest time to play a reply that has arrived completely.
  public var playback: Nanoseconds = .milliseconds(300_000)
  /// After the end of the user's audio: this long without activity ends the dialogue; 0: never.
  public var linger: Nanoseconds = 0
  /// How long a graph that drains waits for an answer to the user's last words.
  public var drain: Nanoseconds = .milliseconds(30_000)
  /// True: a dialogue that has ended as intended may be followed by another, on the command `begin`. False: the session ends with it.
  public var waitsAfterEnd = false
  /// How long to wait for a new key after the service rejected the old one; 0: not at all.
  public var renew: Nanoseconds = 0
  /// Timeout of the service's answer to Stop.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// When the video channel is opened: never, on the service's command, or at the start.
  public enum Live: String, Sendable, Hashable, CaseIterable {
    /// Never.
    case never
    /// On the command of the service.
    case command
    /// At the start of the dialogue.
    case start
  }

  /// Creates rules with the default times.
  public init(_ start: BailianStart, reconnect: ReconnectPolicy) {
    self.start = start
    self.reconnect = reconnect
  }
}
