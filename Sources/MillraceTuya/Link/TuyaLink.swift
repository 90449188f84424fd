public import MillraceCore
public import MillraceDialog

/// The state of a connection as a pure state machine: login, pings, renewal and end. It has no socket and no clock.
///
/// ```
/// idle ──open──▸ connecting ──opened──▸ authing ──200──▸ connected ──ConnClose──▸ closedByServer
///                     └── lost, refused, timed out, closed here ──▸ closed, or closedByServer ──open──▸ connecting
/// ```
///
/// It does not reconnect. Every input is legal in every state; what is meaningless there has no effect.
public struct TuyaLink: Sendable {
  /// The states; the numbers are the vendor's.
  public enum State: Int, Sendable, Hashable, CaseIterable {
    /// Never opened.
    case idle = 0
    /// The byte stream opens.
    case connecting
    /// The hello was sent, and not answered yet.
    case authing
    /// Packets of sessions may be sent.
    case connected
    /// The cloud has refused or closed it.
    case closedByServer
    /// It has ended otherwise.
    case closed
  }

  /// What happens.
  public enum Input: Sendable, Hashable {
    /// A session wants the connection.
    case open
    /// The byte stream is open.
    case opened
    /// The cloud answered the hello, with the connection's id.
    case answered(TuyaStatus, id: String)
    /// The cloud answered a renewal; the time until the new expiry, where it says one.
    case refreshed(TuyaStatus, in: Nanoseconds?)
    /// The cloud closes the connection.
    case closed(TuyaStatus)
    /// The cloud will close it some time after the last packet of use.
    case delayed
    /// Bytes arrived.
    case received
    /// A packet of a session was sent or received.
    case used
    /// The byte stream was lost, or could not be opened.
    case lost(DialogError)
    /// What arrived is not valid.
    case invalid(TuyaWireProblem)
    /// Nobody needs the connection any more.
    case close
    /// Reading was paused, or continues: meanwhile the cloud's silence is not its fault.
    case excused
    /// Time has passed.
    case tick
  }

  /// What to do.
  public enum Action: Sendable, Hashable {
    /// Open the byte stream.
    case connect
    /// Send the hello, with the dialect v1 and the credentials.
    case hello
    /// Send a ping.
    case ping
    /// Ask for more time, under this connection id.
    case refresh(id: String)
    /// Send `ConnClose` with this status.
    case sendClose(TuyaStatus)
    /// Close the byte stream behind what was sent.
    case shut
    /// Close it at once.
    case cancel
    /// It is authenticated, under this id: sessions may begin.
    case connected(id: String)
    /// Tell the sessions that the cloud will close the connection.
    case willDisconnect
    /// It has ended: tell every session.
    case ended(DialogError)
  }

  /// How long before the expiry more time is asked for. Source: the vendor's client.
  static let ahead = Nanoseconds.milliseconds(10_000)
  /// How long until it is asked for again, where no answer comes.
  static let refreshAgain = Nanoseconds.milliseconds(5_000)

  private let open: Nanoseconds
  private let answer: Nanoseconds
  private let ping: Nanoseconds
  private let idle: Nanoseconds

  /// The state.
  public private(set) var state = State.idle
  private var id = ""
  /// The end of the login's time.
  private var limit: Nanoseconds?
  private var nextPing: Nanoseconds?
  private var lastPing: Nanoseconds = 0
  private var lastReceived: Nanoseconds = 0
  private var lastUse: Nanoseconds = 0
  private var nextRefresh: Nanoseconds?
  private var isDelayed = false
  /// The cloud has accepted a login: the local key is right.
  private var hasConnected = false

  /// Creates the state of a connection that is not open.
  /// - Parameter target: its times.
  public init(_ target: TuyaTarget) {
    func time(_ milliseconds: Int) -> Nanoseconds { .milliseconds(Int64(max(1, milliseconds))) }
    open = time(target.open)
    answer = time(target.answer)
    ping = time(target.ping)
    idle = time(target.idle)
  }

  /// How long the cloud may be silent: one and a half intervals of pings. Source: 90 s at 60 s in the vendor's client.
  private var silence: Nanoseconds { ping / 2 * 3 }

  /// When the cloud's silence ends the connection. After this machine was suspended, a ping goes out first.
  private var silenceEnd: Nanoseconds { max(lastReceived + silence, lastPing + ping / 2) }

  /// When to call with `tick`; nil: never.
  public var deadline: Nanoseconds? {
    switch state {
    case .idle, .closed, .closedByServer: nil
    case .connecting, .authing: limit
    case .connected:
      [nextPing, silenceEnd, nextRefresh, isDelayed ? lastUse + idle : nil].compactMap { $0 }
        .min()
    }
  }

  /// True while a byte stream is open, or opens.
  public var isActive: Bool { state == .connecting || state == .authing || state == .connected }

  /// Plans the renewal: the connection expires after this time, or, when nil, never.
  public mutating func expires(in time: Nanoseconds?, at now: Nanoseconds) {
    nextRefresh = time.map { now + max(0, $0 - Self.ahead) }
  }

  /// Handles an input, and returns what to do, in order.
  public mutating func handle(_ input: Input, at now: Nanoseconds) -> [Action] {
    switch (input, state) {
    case (.open, .idle), (.open, .closed), (.open, .closedByServer): return begin(at: now)
    case (.opened, .connecting):
      state = .authing
      limit = now + answer
      return [.hello]
    case (.answered(let status, let id), .authing): return answered(status, id, at: now)
    case (.answered(let status, _), .connected) where status != .ok: return closedByCloud(status)
    case (.closed(let status), .authing), (.closed(let status), .connected): return closedByCloud(status)
    case (.refreshed(let status, let time), .connected):
      guard status == .ok else { return closedByCloud(.expired) }
      expires(in: time, at: now)
      return []
    case (.delayed, .connected):
      isDelayed = true
      lastUse = now
      return [.willDisconnect]
    case (.received, .connected), (.received, .authing), (.excused, .connected):
      lastReceived = now
      return []
    case (.used, .connected):
      lastUse = now
      return []
    case (.lost(let error), _) where isActive: return end(.closed, [], error)
    case (.invalid(let problem), _) where isActive:
      return end(.closed, [.cancel], error(for: problem))
    case (.close, .connected):
      state = .closed
      return [.sendClose(.closedByClient), .shut]
    case (.close, .connecting), (.close, .authing):
      state = .closed
      return [.cancel]
    case (.tick, _) where isActive: return tick(at: now)
    default: return []
    }
  }

  private mutating func begin(at now: Nanoseconds) -> [Action] {
    state = .connecting
    limit = now + open + answer
    id = ""
    nextPing = nil
    nextRefresh = nil
    isDelayed = false
    return [.connect]
  }

  private mutating func answered(_ status: TuyaStatus, _ id: String, at now: Nanoseconds) -> [Action] {
    guard status == .ok else { return closedByCloud(status) }
    state = .connected
    hasConnected = true
    limit = nil
    self.id = id
    lastReceived = now
    lastUse = now
    lastPing = now
    nextPing = now + ping
    return [.connected(id: id)]
  }

  private mutating func closedByCloud(_ status: TuyaStatus) -> [Action] {
    end(.closedByServer, [.shut], .tuya(closedWith: status))
  }

  private mutating func end(_ state: State, _ actions: [Action], _ error: DialogError) -> [Action] {
    self.state = state
    return actions + [.ended(error)]
  }

  /// What an invalid frame means. A signature that is wrong from the first is that of another key, which no other attempt changes.
  private func error(for problem: TuyaWireProblem) -> DialogError {
    guard problem.code == .signMismatch, !hasConnected else {
      return .tuya(
        .common, "the cloud sent an invalid frame: \(problem); the connection was closed", category: .network,
        reaction: .reconnect)
    }
    return .tuya(
      .common, "the cloud signs with another key; check \"localKey\", \"client\" and \"signLevel\"",
      category: .auth, reaction: .refuse, detail: problem.code.rawValue)
  }

  // MARK: Time

  private mutating func tick(at now: Nanoseconds) -> [Action] {
    if let limit, now >= limit {
      let what = state == .connecting ? "no connection" : "no answer to the login"
      let error = DialogError.tuya(
        .common, "\(what) in time; check the address and the network",
        category: .network, reaction: .reconnect)
      return end(.closed, [.cancel], error)
    }
    guard state == .connected else { return [] }
    if now >= silenceEnd && nextPing.map({ $0 > now }) ?? true {
      let error = DialogError.tuya(
        .closedByCloud, "the cloud sent nothing for \(silence / 1_000_000) ms", reaction: .reconnect,
        detail: "\(TuyaStatus.keepAliveTimeout.rawValue)")
      return end(.closed, [.sendClose(.closedByClient), .cancel], error)
    }
    if isDelayed && now >= lastUse + idle {
      let error = DialogError.tuya(
        .common,
        "the connection was not used for \(idle / 1_000_000) ms after the cloud had announced its end",
        category: .network, reaction: .reconnect)
      return end(.closed, [.sendClose(.closedByClient), .shut], error)
    }
    var actions: [Action] = []
    if let due = nextPing, now >= due {
      nextPing = now + ping
      lastPing = now
      actions.append(.ping)
    }
    if let due = nextRefresh, now >= due {
      nextRefresh = now + Self.refreshAgain
      actions.append(.refresh(id: id))
    }
    return actions
  }
}
