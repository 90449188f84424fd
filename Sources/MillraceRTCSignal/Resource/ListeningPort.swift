internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// A port of this process on which WHIP and WHEP servers listen, each at a path of its own. Those that name the same host and port share
/// one HTTP server, which begins with the first of them and ends with the last.
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

  private struct State {
    var members: [String: ResourceServer] = [:]
    /// Those that wait until it listens.
    var waiting: [Joined] = []
    /// Nil: it does not listen yet, or no longer.
    var server: HTTPServer?
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
      state.members[settings.path] = member
      state.waiting = [done]
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
      guard state.members[settings.path] == nil else { return (true, false) }
      state.members[settings.path] = member
      if state.server == nil { state.waiting.append(done) }
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
    state.withLock { $0.members[path] = nil }
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
      case .failure: state.members = [:]
      }
      defer { state.waiting = [] }
      return state.waiting
    }
    switch result {
    case .success:
      for done in waiting { done(.success(self)) }
      // Its members may have left meanwhile.
      closeIfEmpty()
    case .failure(let problem):
      forget()
      for done in waiting { done(.failure(Self.error(problem))) }
    }
  }

  private static func error(_ problem: NetError) -> DialogError {
    // A port may become free; a certificate does not become right.
    let isFinal = problem.kind == .address || problem.kind == .tls
    return isFinal
      ? RTCError.failed.error(problem.text, reaction: .refuse)
      : RTCError.network.error(problem.text, reaction: .reconnect)
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
    let members = state.withLock { Array($0.members.values) }
    for member in members { member.report(refusals) }
  }

  private func decide(_ request: HTTPServer.Request) -> HTTPServer.Decision {
    let path = request.path
    let members = state.withLock { $0.members }
    if let member = members[path] { return member.decide(request, nil) }
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
    let folder = end == path.startIndex ? "/" : String(path[..<end])
    guard let member = members[folder], end < path.endIndex else {
      let text = "there is nothing at this path"
      for member in members.values { member.noteRefused(by: request.peer, 404, text) }
      return .answer(ResourceResponse(origin: nil).text(404, text + "\n"))
    }
    return member.decide(request, String(path[path.utf8.index(after: end)...]))
  }
}
