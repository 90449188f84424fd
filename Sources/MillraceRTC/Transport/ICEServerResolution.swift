internal import CRtcShim
package import MillraceCore

/// Turns the names of STUN and TURN servers into what an `ICETransport` needs: IP addresses.
///
/// The system is asked on threads of their own, one a host, which may outlive the bound when name servers do not answer.
package enum ICEServerResolution {
  /// What became of the servers.
  package struct Outcome: Sendable, Equatable {
    /// The settings with the servers that can be used.
    package var settings: ICESettings
    /// Why others cannot, as messages.
    package var problems: [String]
  }

  /// IP addresses of a host, one of each family, that of IPv4 first; or why there are none.
  package typealias Resolver = @Sendable (_ host: String) -> Result<[String], RTCProblem>

  /// How long names may take.
  package static let bound: Nanoseconds = .milliseconds(5_000)
  /// Servers that are used: each TURN server costs an allocation, and so time before the first description.
  package static let mostServers = 16

  /// Adds servers to settings. A server whose name does not resolve is left out, and said to be among the problems.
  /// - Parameters:
  ///   - report: is called once, on the loop's thread; never when the loop ends before. A failure: a relay has to be used, and none is
  ///     left.
  package static func settings(
    for servers: [ICEServerAddress], into settings: ICESettings, on loop: RTCLoop,
    within bound: Nanoseconds = ICEServerResolution.bound,
    resolver: @escaping Resolver = ICEServerResolution.system,
    report: @escaping @Sendable (Result<Outcome, RTCProblem>) -> Void
  ) {
    let lookup = HostLookup(servers.prefix(mostServers).map(\.url.host), resolver)
    loop.perform {
      let member = LookupMember(lookup, until: Clock(.realtime).now + bound) { found in
        report(outcome(of: servers, found, settings))
      }
      member.begin(on: loop)
    }
  }

  /// Asks the system. Blocks.
  package static let system: Resolver = { host in
    let room = 64
    var status: Int32 = 0
    let texts = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 2 * room) { text -> [String] in
      guard let start = text.baseAddress else { return [] }
      unsafe text.initialize(repeating: 0)
      status = unsafe millrace_rtc_resolve(host, start, start + room, room)
      return unsafe [String(cString: start), String(cString: start + room)]
    }
    guard status == 0 else {
      return .failure(.value(unsafe String(cString: millrace_rtc_resolve_error(status))))
    }
    return .success(texts.filter { !$0.isEmpty })
  }

  /// The settings with what was found of each host.
  static func outcome(
    of servers: [ICEServerAddress], _ found: [String: Result<[String], RTCProblem>], _ settings: ICESettings
  ) -> Result<Outcome, RTCProblem> {
    var outcome = Outcome(settings: settings, problems: [])
    for server in servers.prefix(mostServers) {
      do throws(RTCProblem) {
        try add(server, addresses(of: server, found), to: &outcome.settings)
      } catch {
        outcome.problems.append("\(error)")
      }
    }
    if servers.count > mostServers {
      outcome.problems.append("\(servers.count) ICE servers; the first \(mostServers) are used")
    }
    guard !settings.isRelayOnly || !outcome.settings.relays.isEmpty else {
      let reasons = outcome.problems.isEmpty ? "name one" : outcome.problems.joined(separator: "; ")
      return .failure(.value("a relay has to be used, and there is no TURN server: \(reasons)"))
    }
    return .success(outcome)
  }

  private static func addresses(
    of server: ICEServerAddress, _ found: [String: Result<[String], RTCProblem>]
  ) throws(RTCProblem) -> [String] {
    let host = server.url.host
    switch found[host] {
    case .success(let addresses) where !addresses.isEmpty: return addresses
    case .success: throw .value("the name of \"\(server.url)\" has no address; check it")
    case .failure(let problem): throw .value("the name of \"\(server.url)\" is not known: \(problem)")
    case nil: throw .value("the name of \"\(server.url)\" was not resolved in time; check the name servers")
    }
  }

  private static func add(
    _ server: ICEServerAddress, _ addresses: [String], to settings: inout ICESettings
  ) throws(RTCProblem) {
    switch server.url.kind {
    case .stun:
      // One is enough for all. An address of IPv6 needs none: the machine's own is the one that the server sees.
      guard settings.stun == nil, let address = addresses.first else { return }
      settings.stun = (address, server.url.port)
    case .turn(let kind):
      guard let user = server.user, let password = server.password, !user.isEmpty else {
        throw .value("\"\(server.url)\" needs a user and a password")
      }
      for address in addresses {
        settings.relays.append(
          ICESettings.Relay(
            address: address, port: server.url.port, user: user, password: password, kind: kind))
      }
    }
  }
}

/// Asks for several hosts at once, each on a thread of its own.
private final class HostLookup: Sendable {
  let hosts: Set<String>
  let found = Locked<[String: Result<[String], RTCProblem>]>([:])
  private let resolver: ICEServerResolution.Resolver

  init(_ hosts: [String], _ resolver: @escaping ICEServerResolution.Resolver) {
    self.hosts = Set(hosts)
    self.resolver = resolver
  }

  var isDone: Bool { found.withLock { $0.count } == hosts.count }

  /// - Parameter entry: is woken after each answer.
  func begin(_ entry: RTCLoop.Entry) {
    for host in hosts {
      // Nothing to ask for, and no thread.
      if DatagramAddress(host: host, port: 0) != nil {
        found.withLock { $0[host] = .success([host]) }
        continue
      }
      let status = DetachedThread.start("rtc-names") { [self] in
        let answer = resolver(host)
        found.withLock { $0[host] = answer }
        entry.wake()
      }
      if status != 0 { found.withLock { $0[host] = .failure(.system("a thread for names", status)) } }
    }
    entry.wake()
  }
}

/// Waits on the loop's thread until all hosts have answered, or until it is too late.
private final class LookupMember: RTCLoopMember {
  private let lookup: HostLookup
  private let deadline: Nanoseconds
  private let report: ([String: Result<[String], RTCProblem>]) -> Void
  private var loop: RTCLoop?
  private var entry: RTCLoop.Entry?

  init(
    _ lookup: HostLookup, until deadline: Nanoseconds,
    _ report: @escaping ([String: Result<[String], RTCProblem>]) -> Void
  ) {
    self.lookup = lookup
    self.deadline = deadline
    self.report = report
  }

  func begin(on loop: RTCLoop) {
    let entry = loop.add(self)
    self.loop = loop
    self.entry = entry
    lookup.begin(entry)
  }

  func run(at now: Nanoseconds) -> Nanoseconds? {
    guard let loop, let entry else { return nil }
    guard lookup.isDone || now >= deadline else { return deadline }
    release()
    loop.remove(entry)
    report(lookup.found.withLock { $0 })
    return nil
  }

  func end() { release() }

  private func release() {
    loop = nil
    entry = nil
  }
}
