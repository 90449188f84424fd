#if RTC
  internal import MillraceCore
  internal import MillraceCrypto
  internal import MillraceDoubles
  internal import MillraceNet
  internal import MillraceRoom
  internal import MillraceRoomWire

  /// A hub that is listening, as a double.
  final class RoomDouble: RunningDouble {
    typealias Server = DoubleServer<RoomMembers, NoMembers>

    private let server: Server
    private let place: Place

    private init(_ server: Server, _ place: Place) {
      self.server = server
      self.place = place
    }

    // MARK: Listening

    /// - Parameters:
    ///   - name: that of the scenario's file; nil: it has none.
    ///   - key: what signs tokens; nil: everybody on this machine is let in.
    static func listen(
      _ scenario: Server.Scenario, named name: String?, _ options: DoubleOptions, key: SecretKey?
    ) async throws(DoubleProblem) -> RoomDouble {
      let server = Server(scenario, watch: options.watch)
      var settings = Self.settings(scenario.own, options, key)
      settings.watch = RoomWatch(server)
      if let problem = settings.problem {
        throw .other(name.map { "\($0): \(problem.text)" } ?? problem.text)
      }
      let log = RoomLog(server)
      let hub: RoomHubServer
      do throws(NetError) {
        hub = try await RoomHubServer.listen(settings, events: { log.note($0) })
      } catch {
        throw .listening(error)
      }
      server.listens(on: hub.port, isSecure: settings.identity != nil) {
        // Its members are informed that it goes.
        LastRequests.begin()
        hub.stop { LastRequests.end() }
      }
      if key != nil { server.note("# tokens let in; to make one: millrace token room") }
      return RoomDouble(server, Place(settings, port: hub.port))
    }

    private static func settings(
      _ members: RoomMembers, _ options: DoubleOptions, _ key: SecretKey?
    ) -> RoomServerSettings {
      var settings = RoomServerSettings(port: options.port)
      settings.host = members.host
      settings.identity = options.identity
      settings.hub = members.hub(key: key)
      settings.hasPage = members.page
      settings.admission = .loadTest
      // One address that opens connections and says nothing leaves room for others.
      settings.admission.halfOpenPerAddress = max(32, settings.hub.connectionsPerAddress / 4)
      settings.admission.origins = members.origins
      settings.admission.hosts = members.hosts
      settings.admission.allowsPlaintext = members.plain
      return settings
    }

    // MARK: RunningDouble

    var port: Int { server.port }
    /// What browsers open; without a page, where members connect.
    var address: String { place.page ?? place.hub }
    var settings: [DoubleSetting] { [DoubleSetting("url", place.hub)] }
    var seen: DoubleReport { server.report }
    func stop() { server.stop() }

    /// How a hub is reached from this machine.
    private struct Place: Sendable {
      let page: String?
      let hub: String

      init(_ settings: RoomServerSettings, port: Int) {
        let isAnywhere = settings.host == "0.0.0.0" || settings.host == "::"
        let host = isAnywhere ? "localhost" : settings.host
        let authority = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        let isSecure = settings.identity != nil
        page = settings.hasPage ? "\(isSecure ? "https" : "http")://\(authority)/" : nil
        hub = "\(isSecure ? "wss" : "ws")://\(authority)\(RoomWire.path)"
      }
    }
  }

  /// Writes the report of who comes and goes. On the hub's thread.
  private final class RoomLog: Sendable {
    private let server: RoomDouble.Server
    /// Whose peers are in rooms.
    private let users = Locked<[RoomName: RoomName]>([:])

    init(_ server: RoomDouble.Server) { self.server = server }

    func note(_ event: RoomServerEvent) {
      switch event {
      case .roomBegan(let room): server.note("# room \(room) begins")
      case .roomEnded(let room): server.note("# room \(room) has ended")
      case .joined(let member, let room):
        users.withLock { $0[member.peer] = member.user }
        server.note("# \(member.user) has joined \(room) as \(member.role.rawValue)")
      case .left(let peer, let room):
        let user = users.withLock { $0.removeValue(forKey: peer) }
        server.note("# \(user ?? peer) has left \(room)")
      case .stalled(let address): server.note("# dropped: \(address) does not take what it is sent")
      case .refused(let refusals):
        server.note("- refused \(refusals.count): \(refusals.peer): \(refusals.latest)")
      }
    }
  }
#endif
