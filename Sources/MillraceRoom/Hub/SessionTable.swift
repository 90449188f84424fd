internal import MillraceCore
internal import MillraceRoomWire

/// Who a connection is logged in as.
struct RoomUser: Sendable {
  let name: RoomName
  let displayName: String
  let grant: RoomGrant
}

/// The connections of a hub: what each has sent, who it is, what its tokens allow and when they end.
struct SessionTable: Sendable {
  /// One connection.
  struct Session: Sendable {
    let address: String
    /// Who it is.
    fileprivate(set) var user: RoomUser?
    /// The peer that it is in a room.
    fileprivate(set) var peer: RoomName?
    /// What lets it be in the room; nil: outside.
    fileprivate var entry: RoomGrant?
    /// Nothing more is read of it: the hub has closed it.
    fileprivate(set) var isShut = false
    fileprivate var sequence = RoomSequence()
    fileprivate var badMessages = 0
    /// See `RateLimit`.
    fileprivate var requests: Nanoseconds = 0
    fileprivate var read: Nanoseconds = 0
    fileprivate var calls: Nanoseconds = 0
    /// The end of a token that the member was told of.
    fileprivate var warnedOf: Nanoseconds?

    fileprivate init(address: String) { self.address = address }

    /// When the token ends that counts at present.
    fileprivate var end: Nanoseconds? { (entry ?? user?.grant)?.end }
    /// Values `once` that have let it in. It may present them again.
    fileprivate var once: [String] { [user?.grant.once, entry?.once].compactMap { $0 } }
  }

  /// What a frame of a connection holds.
  enum Receipt {
    /// Nobody is there to read it for.
    case nothing
    /// It is longer than messages are.
    case tooLong
    /// It is no request; true: it was one too many.
    case noRequest(RoomError, isLast: Bool)
    /// A request that is refused as such.
    case refused(id: Int, RoomError)
    case request(RoomRequest)
  }

  /// What happens to a token.
  enum Expiry {
    /// It ends after so many nanoseconds; it has ended.
    case ahead(Nanoseconds), over
  }

  /// Devices of one user that ring at once, the latest: a call of a user with very many connections stays one call.
  static let mostRinging = 16
  /// Calls of a connection: a caller that rings again and again would keep a user busy. People do not dial faster.
  private static let calling = RateLimit(every: 2_000_000_000, burst: 3)

  private let settings: RoomHubSettings
  private let limit: RateLimit
  private let reading: RateLimit
  private var sessions: [RoomConnectionID: Session] = [:]
  private var users: [RoomName: [RoomConnectionID]] = [:]
  private var addresses: AddressTable
  private var admission: RoomAdmission
  /// When something happens to a token.
  private var ends = Deadlines<RoomConnectionID>()

  init(_ settings: RoomHubSettings) {
    self.settings = settings
    limit = RateLimit(perSecond: settings.requestsPerSecond)
    reading = ReadingLimit.ofConnection(settings)
    addresses = AddressTable(settings)
    admission = RoomAdmission(settings)
  }

  var ids: [RoomConnectionID] { sessions.keys.sorted() }

  subscript(connection: RoomConnectionID) -> Session? { sessions[connection] }

  func addCounts(to counts: inout RoomHubCounts) {
    counts.connections = sessions.count
    counts.users = users.count
    counts.addresses = addresses.count
    counts.onceValues = admission.count
    counts.expiries = ends.count
  }

  // MARK: Connections

  /// Begins a connection; false: there are too many.
  mutating func insert(_ connection: RoomConnectionID, address: String) -> Bool {
    guard sessions.count < settings.connections, addresses.connect(address) else { return false }
    sessions[connection] = Session(address: address)
    return true
  }

  /// Reads nothing more of a connection, which is there until `remove`.
  mutating func shut(_ connection: RoomConnectionID) { sessions[connection]?.isShut = true }

  /// Forgets a connection, which has been logged out before.
  mutating func remove(_ connection: RoomConnectionID, at now: Nanoseconds) {
    guard let session = sessions.removeValue(forKey: connection) else { return }
    addresses.disconnect(session.address, at: now)
  }

  /// Counts a frame that was read; returns for how long nothing more of the connection should be.
  mutating func pace(_ bytes: Int, _ connection: RoomConnectionID, at now: Nanoseconds) -> Nanoseconds {
    guard var session = sessions[connection], !session.isShut else { return 0 }
    let units = ReadingLimit.units(bytes)
    let own = reading.charge(units, &session.read, at: now)
    sessions[connection] = session
    return max(own, addresses.read(units, of: session.address, at: now))
  }

  /// Reads a frame, counts it, and checks what concerns every request.
  mutating func read(_ bytes: [UInt8], from connection: RoomConnectionID, at now: Nanoseconds) -> Receipt {
    guard var session = sessions[connection], !session.isShut else { return .nothing }
    guard bytes.count <= RoomLimits.messageBytes else { return .tooLong }
    defer { sessions[connection] = session }
    let request: RoomRequest
    do throws(RoomReadProblem) { request = try RoomRequest(parsing: bytes) } catch {
      let problem = error
      guard let id = problem.id else { return Self.noRequest(problem.error, &session) }
      // Its id counts all the same: no answer may be taken for that to another request.
      do throws(RoomError) { try session.sequence.take(id) } catch { return Self.noRequest(error, &session) }
      return .refused(id: id, problem.error)
    }
    do throws(RoomError) { try session.sequence.take(request.id) } catch {
      return Self.noRequest(error, &session)
    }
    guard let wait = limit.take(&session.requests, at: now) else { return .request(request) }
    return .refused(id: request.id, RoomError.tooMany("requests of this connection", after: wait))
  }

  private static func noRequest(_ error: RoomError, _ session: inout Session) -> Receipt {
    session.badMessages += 1
    return .noRequest(error, isLast: session.badMessages >= RoomLimits.badMessages)
  }

  // MARK: Users

  /// Logs a connection in, or renews its token, also in its room.
  /// - Parameter seat: where the member is; a token that does not allow that is refused.
  mutating func logIn(
    _ login: RoomLogin, _ connection: RoomConnectionID, seat: RoomSeat?, at time: RoomInstant
  ) throws(RoomError) -> RoomGrant {
    guard var session = sessions[connection] else { throw Self.notLoggedIn }
    let known = session.user
    guard known == nil || known?.name == login.user else {
      throw RoomError(.loggedIn, "this connection is logged in as another user; log out first")
    }
    let grant = try admission.grant(login.token, to: login.user, own: session.once, at: time)
    try seat?.check(grant)
    try admission.use(grant, own: session.once)
    if known == nil { users[login.user, default: []].append(connection) }
    let name = login.name ?? known?.displayName ?? login.user.rawValue
    session.user = RoomUser(name: login.user, displayName: name, grant: grant)
    if session.entry != nil { session.entry = grant }
    sessions[connection] = session
    schedule(connection)
    return grant
  }

  /// Who a connection is. Throws `notLoggedIn`.
  func user(of connection: RoomConnectionID) throws(RoomError) -> RoomUser {
    guard let user = sessions[connection]?.user else { throw Self.notLoggedIn }
    return user
  }

  private static let notLoggedIn = RoomError(.notLoggedIn, "log in first")

  /// Forgets who a connection is. It is in no room any more.
  mutating func logOut(_ connection: RoomConnectionID) {
    guard let user = sessions[connection]?.user else { return }
    sessions[connection]?.user = nil
    ends.remove(connection)
    users[user.name]?.removeAll { $0 == connection }
    if users[user.name]?.isEmpty == true { users[user.name] = nil }
  }

  /// The connections at which a user can be called: those whose token lasts, the latest.
  func reachable(_ user: RoomName, at now: Nanoseconds) -> [RoomConnectionID] {
    let connections = users[user, default: []].filter { connection in
      sessions[connection]?.user?.grant.isOver(at: now) == false
    }
    return Array(connections.suffix(Self.mostRinging))
  }

  /// Counts a call of a connection. Throws `tooManyRequests`.
  mutating func countCall(of connection: RoomConnectionID, at now: Nanoseconds) throws(RoomError) {
    guard var session = sessions[connection] else { return }
    if let wait = Self.calling.take(&session.calls, at: now) {
      throw RoomError.tooMany("calls of this connection", after: wait)
    }
    sessions[connection] = session
  }

  // MARK: Rooms

  /// Counts an offer to the hub. Throws `tooManyRequests`.
  mutating func countOffer(of connection: RoomConnectionID, at now: Nanoseconds) throws(RoomError) {
    guard let address = sessions[connection]?.address else { return }
    if let wait = addresses.offer(address, at: now) {
      throw RoomError.tooMany("offers from this address", after: wait)
    }
  }

  /// What allows a connection to join a room: the token that comes with it, or that of `login`. Counts the join, whether it is allowed or
  /// not; but the token is used by `enter` only.
  mutating func grant(
    for join: RoomJoin, _ connection: RoomConnectionID, at time: RoomInstant
  ) throws(RoomError) -> RoomGrant {
    guard let session = sessions[connection], let user = session.user else { throw Self.notLoggedIn }
    guard session.peer == nil else {
      throw RoomError(.inRoom, "this connection is in a room; leave it first")
    }
    if let wait = addresses.join(session.address, at: time.now) {
      throw RoomError.tooMany("joins from this address", after: wait)
    }
    guard let token = join.token else {
      try user.grant.check(join, at: time.now)
      return user.grant
    }
    let grant = try admission.grant(token, to: user.name, own: session.once, at: time)
    try grant.check(join, at: time.now)
    return grant
  }

  /// Uses a grant to be a peer in a room.
  mutating func enter(
    _ connection: RoomConnectionID, as peer: RoomName, _ grant: RoomGrant
  ) throws(RoomError) {
    try admission.use(grant, own: sessions[connection]?.once ?? [])
    sessions[connection]?.peer = peer
    sessions[connection]?.entry = grant
    schedule(connection)
  }

  /// The connection is in no room any more.
  mutating func leave(_ connection: RoomConnectionID) {
    sessions[connection]?.peer = nil
    sessions[connection]?.entry = nil
    schedule(connection)
  }

  // MARK: Time

  var deadline: Nanoseconds? { [addresses.deadline, ends.next].compactMap { $0 }.min() }

  /// Forgets what no longer counts.
  mutating func run(at time: RoomInstant) {
    admission.forget(at: time)
    addresses.run(at: time.now)
  }

  /// The next token of which something is due.
  mutating func popDue(at now: Nanoseconds) -> (connection: RoomConnectionID, expiry: Expiry)? {
    guard let connection = ends.popDue(at: now), let end = sessions[connection]?.end else { return nil }
    guard end > now else { return (connection, .over) }
    sessions[connection]?.warnedOf = end
    ends.set(connection, end)
    return (connection, .ahead(end - now))
  }

  /// Waits for the end of the token that counts from now on, first for the warning.
  private mutating func schedule(_ connection: RoomConnectionID) {
    guard let session = sessions[connection], let end = session.end else { return ends.remove(connection) }
    let warning = Nanoseconds(settings.warningSeconds) * 1_000_000_000
    ends.set(connection, session.warnedOf == end ? end : end - warning)
  }
}

extension RoomError {
  /// A limit that was reached, and when there is room again.
  static func tooMany(_ what: String, after wait: Nanoseconds) -> RoomError {
    let milliseconds = Int((wait + 999_999) / 1_000_000)
    return RoomError(
      .tooManyRequests, "too many \(what); try again after \(milliseconds) ms",
      afterMilliseconds: milliseconds)
  }
}
