internal import MillraceCore
internal import MillraceCrypto
internal import MillraceRoomWire

/// What a member may do, and how long: the token's claims as the hub uses them.
struct RoomGrant: Sendable, Hashable {
  /// The only room; nil: every room.
  var room: RoomName?
  /// The highest role.
  var role = RoomRole.host
  var rights = Set(RoomRight.allCases)
  /// When it ends, by the clock that only rises; nil: never.
  var end: Nanoseconds?
  /// The same as Unix time in milliseconds.
  var unixEnd: Int64?
  var once: String?

  /// Of a hub without a key.
  static let unlimited = RoomGrant()

  /// How far ahead an end is counted: 31 years, so that nothing overflows.
  private static let longestMilliseconds: Int64 = 1_000_000_000_000

  private init() {}

  init(_ token: RoomToken, at time: RoomInstant) {
    room = token.room
    role = token.role ?? .host
    rights = token.rights ?? [.publish]
    // A member that can never be a host can never publish.
    if role == .viewer { rights.remove(.publish) }
    let unixEnd = Int64(token.expiry) * 1_000
    let milliseconds = min(unixEnd - time.unixMilliseconds, Self.longestMilliseconds)
    end = time.now + milliseconds * 1_000_000
    self.unixEnd = unixEnd
    once = token.once
  }

  func allows(_ wanted: RoomRole) -> Bool { role == .host || wanted == .viewer }

  /// What is refused when its time is over.
  static let over = RoomError(.tokenExpired, "the token has ended; log in again with a new one")

  /// Throws where it does not allow a join.
  func check(_ join: RoomJoin, at now: Nanoseconds) throws(RoomError) {
    guard !isOver(at: now) else { throw Self.over }
    guard opens(join.room) else { throw RoomError(.badToken, "the token is another room's") }
    guard allows(join.role ?? role) else {
      throw RoomError(.forbidden, "the token does not allow to be a host")
    }
  }

  func opens(_ wanted: RoomName) -> Bool { room == nil || room == wanted }

  func isOver(at now: Nanoseconds) -> Bool { end.map { $0 <= now } ?? false }
}

/// Decides whom a hub lets in.
struct RoomAdmission: Sendable {
  private let key: SecretKey?
  /// See `RoomHubSettings`.
  private let reserved: [RoomName: SecretKey]
  private var used: OnceTable

  /// Why nobody else is a reserved user.
  private static let taken = RoomError(
    .forbidden, "this name is that of the hub's own participant; choose another")

  init(_ settings: RoomHubSettings) {
    key = settings.key
    reserved = settings.reserved
    used = OnceTable(most: settings.onceValues)
  }

  /// Values `once` that are remembered.
  var count: Int { used.count }

  /// What a token allows its user. Changes nothing: see `use`.
  /// - Parameter own: values `once` that have let in this connection, which may present them again.
  func grant(
    _ text: String?, to user: RoomName, own: [String], at time: RoomInstant
  ) throws(RoomError) -> RoomGrant {
    let ownKey = reserved[user]
    guard let key = ownKey ?? key else { return .unlimited }
    guard let text else {
      if ownKey != nil { throw Self.taken }
      throw RoomError(.badToken, "this hub lets in by token only: send \"token\"")
    }
    let token: RoomToken
    do throws(RoomError) {
      token = try RoomToken(text, key: key, unixMilliseconds: time.unixMilliseconds)
    } catch {
      throw ownKey == nil ? error : Self.taken
    }
    guard token.user == user else { throw RoomError(.badToken, "the token is another user's") }
    if let once = token.once, used.contains(once), !own.contains(once) {
      throw RoomError(.tokenUsed, "the token lets in once, and did; get a new one")
    }
    return RoomGrant(token, at: time)
  }

  /// Remembers that a grant lets in.
  mutating func use(_ grant: RoomGrant, own: [String]) throws(RoomError) {
    guard let once = grant.once, let end = grant.end, let unixEnd = grant.unixEnd, !own.contains(once)
    else { return }
    guard used.insert(once, until: RoomInstant(end, unixMilliseconds: unixEnd)) else {
      let text = "the hub remembers as many tokens as it can; use one without \"once\", or wait"
      throw RoomError(.tooManyRequests, text, afterMilliseconds: 1_000)
    }
  }

  /// Forgets values whose tokens have ended.
  mutating func forget(at time: RoomInstant) { used.forget(at: time) }
}
