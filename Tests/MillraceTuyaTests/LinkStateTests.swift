import MillraceCore
import MillraceDialog
import Testing

@testable import MillraceTuya

/// A millisecond.
private let ms: Nanoseconds = 1_000_000
/// Any error of a byte stream.
private let loss = DialogError.tuya(.common, "gone", category: .network, reaction: .reconnect)

/// A link with short times, brought into a state at the time 0.
private func link(_ state: TuyaLink.State) -> TuyaLink {
  var target = TuyaTarget(TuyaAccess())
  target.ping = 1_000
  target.open = 300
  target.answer = 200
  target.idle = 5_000
  var link = TuyaLink(target)
  guard state != .idle else { return link }
  _ = link.handle(.open, at: 0)
  guard state != .connecting else { return link }
  _ = link.handle(.opened, at: 0)
  switch state {
  case .connected: _ = link.handle(.answered(.ok, id: "c1"), at: 0)
  case .closedByServer: _ = link.handle(.answered(.notFound, id: ""), at: 0)
  case .closed: _ = link.handle(.lost(loss), at: 0)
  case .idle, .connecting, .authing: break
  }
  return link
}

/// What a link does, in short words.
private func words(_ actions: [TuyaLink.Action]) -> [String] {
  actions.map { action in
    switch action {
    case .connect: "connect"
    case .hello: "hello"
    case .ping: "ping"
    case .refresh(let id): "refresh \(id)"
    case .sendClose(let status): "close \(status.rawValue)"
    case .shut: "shut"
    case .cancel: "cancel"
    case .connected(let id): "connected \(id)"
    case .willDisconnect: "willDisconnect"
    case .ended(let error): "ended \(error.code ?? 0) \(error.detail ?? "-") \(error.reaction.name)"
    }
  }
}

/// What an input does in a state.
private struct Row: CustomTestStringConvertible, Sendable {
  var state: TuyaLink.State
  var input: TuyaLink.Input
  var actions: [String]
  var next: TuyaLink.State
  var testDescription: String { "\(state), \(input)" }
}

private let names: [(String, TuyaLink.Input)] = [
  ("open", .open), ("opened", .opened), ("answered", .answered(.ok, id: "c1")),
  ("refused", .answered(.unauthenticated, id: "")), ("refreshed", .refreshed(.ok, in: 60_000 * ms)),
  ("notRefreshed", .refreshed(.badRequest, in: nil)), ("closed", .closed(.reused)), ("delayed", .delayed),
  ("received", .received), ("used", .used), ("lost", .lost(loss)),
  ("invalid", .invalid(TuyaWireProblem(.fragOrder, "x"))),
  ("close", .close), ("excused", .excused), ("tick", .tick),
]

/// The cells of the table that do something; all others do nothing, and leave the state.
private let cells: [TuyaLink.State: [String: ([String], TuyaLink.State)]] = [
  .idle: ["open": (["connect"], .connecting)],
  .connecting: [
    "opened": (["hello"], .authing), "lost": (["ended 39001 - reconnect"], .closed),
    "invalid": (["cancel", "ended 39001 - reconnect"], .closed), "close": (["cancel"], .closed),
  ],
  .authing: [
    "answered": (["connected c1"], .connected),
    "refused": (["shut", "ended 39012 401 refuse"], .closedByServer),
    "closed": (["shut", "ended 39012 602 ended"], .closedByServer),
    "lost": (["ended 39001 - reconnect"], .closed),
    "invalid": (["cancel", "ended 39001 - reconnect"], .closed), "close": (["cancel"], .closed),
  ],
  .connected: [
    "refused": (["shut", "ended 39012 401 refuse"], .closedByServer),
    "notRefreshed": (["shut", "ended 39012 605 reconnect"], .closedByServer),
    "closed": (["shut", "ended 39012 602 ended"], .closedByServer),
    "delayed": (["willDisconnect"], .connected),
    "lost": (["ended 39001 - reconnect"], .closed),
    "invalid": (["cancel", "ended 39001 - reconnect"], .closed), "close": (["close 601", "shut"], .closed),
  ],
  .closedByServer: ["open": (["connect"], .connecting)], .closed: ["open": (["connect"], .connecting)],
]

private let rows: [Row] = TuyaLink.State.allCases.flatMap { state in
  names.map { name, input in
    let (actions, next) = cells[state]?[name] ?? ([], state)
    return Row(state: state, input: input, actions: actions, next: next)
  }
}

@Suite("Tuya: the state of a connection") struct LinkStateTests {
  @Test("every input does in every state what the table says", arguments: rows)
  private func table(_ row: Row) {
    var link = link(row.state)
    #expect(link.state == row.state)
    check(words(link.handle(row.input, at: 1)), row.actions)
    #expect(link.state == row.next)
  }

  @Test(
    "a status of the cloud says whether it helps to connect again",
    arguments: [
      (400, "refuse"), (401, "refuse"), (404, "refuse"), (408, "reconnect"), (500, "reconnect"),
      (504, "reconnect"), (601, "ended"), (602, "ended"), (603, "reconnect"), (604, "reconnect"),
      (605, "reconnect"), (607, "refuse"), (503, "reconnect"), (777, "reconnect"),
    ])
  func statuses(_ status: UInt16, _ reaction: String) {
    for state in [TuyaLink.State.authing, .connected] {
      var link = link(state)
      let actions = link.handle(.closed(TuyaStatus(rawValue: status)), at: 1)
      #expect(words(actions) == ["shut", "ended 39012 \(status) \(reaction)"])
    }
  }

  @Test("a refusal and a status that nobody knows say what to do")
  func cures() {
    func text(_ status: UInt16) -> String { DialogError.tuya(closedWith: TuyaStatus(rawValue: status)).text }
    for name in ["client", "localKey", "user", "password"] { #expect(text(401).contains("\"\(name)\"")) }
    #expect(text(503).contains("check the address, or try later"))
    #expect(text(777).contains("look it up"))
  }

  @Test("a signature that is wrong from the first is a wrong local key; later it is a broken connection")
  func wrongKey() {
    let problem = TuyaLink.Input.invalid(TuyaWireProblem(.signMismatch, "x"))
    var link = link(.authing)
    let actions = link.handle(problem, at: 1)
    check(words(actions), ["cancel", "ended 39001 sign-mismatch refuse"])
    guard case .ended(let error)? = actions.last else { return }
    #expect(error.category == .auth)
    #expect(error.text.contains("check \"localKey\""))
    var connected = TuyaLink(TuyaTarget(TuyaAccess()))
    for input in [TuyaLink.Input.open, .opened, .answered(.ok, id: "c")] {
      _ = connected.handle(input, at: 0)
    }
    check(words(connected.handle(problem, at: 1)), ["cancel", "ended 39001 - reconnect"])
    // The key has been right before.
    for input in [TuyaLink.Input.open, .opened] { _ = connected.handle(input, at: 2) }
    check(words(connected.handle(problem, at: 3)), ["cancel", "ended 39001 - reconnect"])
  }

  @Test("a connection or a login without an answer ends in time")
  func timeouts() {
    for state in [TuyaLink.State.connecting, .authing] {
      var link = link(state)
      let due = state == .connecting ? 500 * ms : 200 * ms
      #expect(link.deadline == due)
      check(link.handle(.tick, at: due - 1), [])
      check(words(link.handle(.tick, at: due)), ["cancel", "ended 39001 - reconnect"])
      #expect(link.deadline == nil)
    }
  }

  @Test("pings go out at their interval, and silence ends the connection half an interval later")
  func pings() {
    var link = link(.connected)
    #expect(link.deadline == 1_000 * ms)
    check(link.handle(.tick, at: 1_000 * ms - 1), [])
    check(link.handle(.tick, at: 1_000 * ms), [.ping])
    _ = link.handle(.received, at: 1_001 * ms)
    check(link.handle(.tick, at: 2_000 * ms), [.ping])
    #expect(link.deadline == 2_501 * ms)
    check(words(link.handle(.tick, at: 2_501 * ms)), ["close 601", "cancel", "ended 39012 604 reconnect"])
  }

  @Test("after a suspension a ping goes out, and has its time to be answered")
  func suspended() {
    var link = link(.connected)
    check(link.handle(.tick, at: 90_000 * ms), [.ping])
    check(link.handle(.tick, at: 90_499 * ms), [])
    #expect(link.deadline == 90_500 * ms)
    check(words(link.handle(.tick, at: 90_500 * ms)), ["close 601", "cancel", "ended 39012 604 reconnect"])
  }

  @Test("silence is excused while this side does not read")
  func excused() {
    var link = link(.connected)
    _ = link.handle(.tick, at: 1_000 * ms)
    _ = link.handle(.excused, at: 1_400 * ms)
    check(link.handle(.tick, at: 1_999 * ms), [])
    #expect(link.state == .connected)
  }

  @Test("more time is asked for ten seconds before the expiry, and again where no answer comes")
  func refresh() {
    var link = link(.connected)
    link.expires(in: 10_400 * ms, at: 0)
    #expect(link.deadline == 400 * ms)
    check(words(link.handle(.tick, at: 400 * ms)), ["refresh c1"])
    func alive(_ time: Nanoseconds) -> [String] {
      _ = link.handle(.received, at: time)
      return words(link.handle(.tick, at: time))
    }
    check(alive(2_000 * ms), ["ping"])
    check(alive(5_399 * ms), ["ping"])
    check(alive(5_400 * ms), ["refresh c1"])
    _ = link.handle(.refreshed(.ok, in: 30_000 * ms), at: 5_500 * ms)
    check(!alive(25_499 * ms).contains("refresh c1"))
    check(alive(25_500 * ms).contains("refresh c1"))
  }

  @Test("without an expiry nothing is asked for")
  func noExpiry() {
    var link = link(.connected)
    link.expires(in: nil, at: 0)
    #expect(link.deadline == 1_000 * ms)
  }

  @Test(
    "a connection whose end was announced is closed once nobody uses it, and opened again by the sessions")
  func delayed() {
    var link = link(.connected)
    func alive(_ time: Nanoseconds) -> [TuyaLink.Action] {
      _ = link.handle(.received, at: time)
      return link.handle(.tick, at: time).filter { $0 != .ping }
    }
    check(alive(6_000 * ms), [])
    check(link.handle(.delayed, at: 7_000 * ms), [.willDisconnect])
    _ = link.handle(.used, at: 9_000 * ms)
    check(alive(13_999 * ms), [])
    check(words(alive(14_000 * ms)), ["close 601", "shut", "ended 39001 - reconnect"])
  }

  @Test("a connection opens again, with nothing left of the one before")
  func again() {
    var link = link(.connected)
    link.expires(in: 10_100 * ms, at: 0)
    _ = link.handle(.delayed, at: 0)
    _ = link.handle(.lost(loss), at: 1)
    check(link.handle(.open, at: 2), [.connect])
    _ = link.handle(.opened, at: 3)
    check(link.handle(.answered(.ok, id: "c2"), at: 4), [.connected(id: "c2")])
    #expect(link.deadline == 1_000 * ms + 4)
  }
}
