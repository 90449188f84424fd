internal import MillraceCore
internal import MillraceDialog
package import MillraceNet

/// A port of this process on which WHIP and WHEP servers listen, each at a path of its own. Those that name the same host and port share
/// one HTTP server, which begins with the first of them and ends with the last. A client that is refused before its path is known is
/// reported by the one that came first of those that are there.
///
/// On the network thread, where the HTTP server works too.
final class ListeningPort: Sendable {
  /// What all of a port have in common.
  private struct Rules: Hashable, Sendable {
    var identity: NetIdentity?
    var admission: ServerAdmission
  }

  private struct Address: Hashable, Sendable {
    var host: String
    var port: Int
  }

  typealias Joined = @Sendable (Result<ListeningPort, DialogError>) -> Void

  /// One that waits until the port listens.
  private struct Waiting {
    /// It has had the port before.
    var hasHadPort: Bool
    var done: Joined
  }

  private struct State {
    private(set) var members: [String: ResourceServer] = [:]
    /// The paths of the members, in the order in which they came.
    private var paths: [String] = []
    var waiting: [Waiting] = []
    /// Nil: it does not listen yet, or no longer.
    var server: HTTPServer?

    /// The one that reports what concerns all.
    var first: ResourceServer? { paths.first.flatMap { members[$0] } }

    /// Adds a server. False: another one has its path.
    mutating func add(_ member: ResourceServer, at path: String) -> Bool {
      guard members[path] == nil else { return false }
      members[path] = member
      paths.append(path)
      return true
    }

    mutating func remove(_ path: String) {
      members[path] = nil
      paths.removeAll { $0 == path }
    }

    mutating func removeAll() { (members, paths) = ([:], []) }
  }

  /// Those that others may join.
  private static let all = Locked<[Address: ListeningPort]>([:])

  private let address: Address
  private let rules: Rules
  private let state = Locked(State())

  private init(_ address: Address, _ rules: Rules) {
    self.address = address
    self.rules = rules
  }

  /// The port it listens on; 0: it does not.
  var port: Int { state.withLock { $0.server?.port ?? 0 } }

  // MARK: Members

  /// Listens for a server, or has it share the port.
  /// - Parameter done: called on the network thread, perhaps at once.
  static func join(_ member: ResourceServer, _ settings: ResourceServerSettings, _ done: @escaping Joined) {
    let address = Address(host: settings.host.lowercased(), port: settings.port)
    let rules = Rules(identity: settings.identity, admission: settings.admission)
    if address.port != 0, let present = all.withLock({ $0[address] }) {
      return present.add(member, settings, rules, done)
    }
    let made = ListeningPort(address, rules)
    if address.port != 0 { all.withLock { $0[address] = made } }
    made.state.withLock { state in
      _ = state.add(member, at: settings.path)
      state.waiting = [Waiting(hasHadPort: settings.hasHadPort, done: done)]
    }
    made.listen()
  }

  private func add(
    _ member: ResourceServer, _ settings: ResourceServerSettings, _ rules: Rules, _ done: @escaping Joined
  ) {
    guard rules == self.rules else {
      return done(
        .failure(
          RTCError.failed.error(
            """
            another node listens on \(address.host):\(address.port) with other rules; give both the same \
            "certificate", "key", "origins", "hosts" and "plain", or another port
            """, reaction: .refuse)))
    }
    let (isTaken, isOpen) = state.withLock { state in
      guard state.add(member, at: settings.path) else { return (true, false) }
      if state.server == nil {
        state.waiting.append(Waiting(hasHadPort: settings.hasHadPort, done: done))
      }
      return (false, state.server != nil)
    }
    if isTaken {
      done(
        .failure(
          RTCError.duplicate.error(
            "another node serves \(settings.path) on \(address.host):\(address.port); choose another path",
            reaction: .refuse)))
    } else if isOpen {
      done(.success(self))
    }
  }

  /// A server ends. With the last one the port is closed.
  func leave(_ path: String) {
    state.withLock { $0.remove(path) }
    closeIfEmpty()
  }

  // MARK: HTTP

  private func listen() {
    HTTPServer.listen(
      host: address.host, port: address.port, identity: rules.identity, on: .shared,
      admission: rules.admission,
      refused: { [self] in report($0) }, decide: { [self] in decide($0) }, done: { [self] in didListen($0) })
  }

  private func didListen(_ result: Result<HTTPServer, NetError>) {
    let waiting = state.withLock { state in
      switch result {
      case .success(let server): state.server = server
      case .failure: state.removeAll()
      }
      defer { state.waiting = [] }
      return state.waiting
    }
    switch result {
    case .success:
      for one in waiting { one.done(.success(self)) }
      // Its members may have left meanwhile.
      closeIfEmpty()
    case .failure(let problem):
      forget()
      for one in waiting { one.done(.failure(Self.error(problem, hasHadPort: one.hasHadPort))) }
    }
  }

  private static func error(_ problem: NetError, hasHadPort: Bool) -> DialogError {
    // A certificate does not become right.
    if problem.kind == .address || problem.kind == .tls {
      return RTCError.failed.error(problem.text, reaction: .refuse)
    }
    // A port that was free once may become free again.
    guard let obstacle = problem.obstacle, !hasHadPort else {
      return RTCError.network.error(problem.text, reaction: .reconnect)
    }
    return RTCError.failed.error("\(problem.text); \(obstacle.cure)", reaction: .refuse)
  }

  private func forget() {
    Self.all.withLock { all in
      if all[address] === self { all[address] = nil }
    }
  }

  private func closeIfEmpty() {
    let server = state.withLock { state in state.members.isEmpty ? state.server.take() : nil }
    guard let server else { return }
    forget()
    // At once, so that the next to come can listen; then connections that wait for nothing.
    server.stopListening()
    Task { await server.stop() }
  }

  private func report(_ refusals: ServerAdmission.Refusals) {
    state.withLock { $0.first }?.report(refusals)
  }

  private func decide(_ request: HTTPServer.Request) -> HTTPServer.Decision {
    let path = request.path
    let (members, first) = state.withLock { ($0.members, $0.first) }
    if let member = members[path] { return member.decide(request, nil) }
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
    let folder = end == path.startIndex ? "/" : String(path[..<end])
    guard let member = members[folder], end < path.endIndex else {
      let text = "there is nothing at this path"
      first?.noteRefused(by: request.peer, 404, text)
      return .answer(ResourceResponse(origin: nil).text(404, text + "\n"))
    }
    return member.decide(request, String(path[path.utf8.index(after: end)...]))
  }
}

extension NetError.ListeningObstacle {
  /// What to do about it, in the parameters of a node.
  package var cure: String {
    switch self {
    case .inUse: "end the program or the node that listens there, or set another \"listen\""
    case .notAvailable: "set \"host\" to an address of this machine"
    case .notPermitted: "set \"listen\" to a port from 1024 on, or give the program the right to lower ones"
    }
  }
}
