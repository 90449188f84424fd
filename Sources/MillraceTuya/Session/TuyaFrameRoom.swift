internal import MillraceDialog
internal import MillraceJSON

/// What fits a packet to the cloud: its attributes, which are never cut, lie in one frame of at most `maxFragment` bytes.
///
/// The bounds are a little lower than the wire's: they leave room for everything that such a packet may have besides.
struct TuyaFrameRoom: Sendable, Hashable {
  /// Bytes for lengths, numbers, and the parameters of a stream: 56 in the creation of a session, 54 in an event, less than 128 in data.
  private static let allowance = 128
  /// Bytes that the longest signature takes from a frame whose length has 16 bits.
  private static let trailer = 32
  /// Bytes of data of an event that the dialect v1 can count: 16 bits.
  private static let mostOldData = 65_535

  private let frame: Int
  private let dialect: TuyaDialect
  /// Bytes of the token, as far as it is known.
  var token = 0

  /// - Parameters:
  ///   - maxFragment: of the connection, in bytes.
  ///   - dialect: of the wire.
  init(maxFragment: Int = 4_096, _ dialect: TuyaDialect = .v21) {
    frame = min(maxFragment, Int(UInt16.max) - Self.trailer)
    self.dialect = dialect
  }

  /// Bytes of the token and of user data that fit the packet that creates a session.
  var creation: Int { frame - Self.allowance - TuyaOrder.mostIDBytes }
  /// Bytes of user data that fit a packet of an event, and of names that fit the login.
  var event: Int { frame - Self.allowance - 2 * TuyaOrder.mostIDBytes }

  /// Bytes that user data take in a packet.
  func bytes(of userData: JSONValue?) -> Int {
    userData.map { TuyaUserData.bytes($0, dialect).count } ?? 0
  }

  /// Checks user data of a command.
  /// - Parameters:
  ///   - userData: everything that the packet will have.
  ///   - more: bytes of other texts in it.
  ///   - command: its name.
  /// - Throws: 39008.
  func check(_ userData: JSONValue?, beside more: Int = 0, _ command: String) throws(DialogError) {
    let count = bytes(of: userData) + more
    guard count > event else { return }
    throw problem(command, "\"userDatas\"", count, event)
  }

  /// Checks what a session is to be created with.
  /// - Parameter token: bytes of its token.
  /// - Throws: 39008.
  func check(creation userData: JSONValue?, token: Int, _ command: String) throws(DialogError) {
    let count = bytes(of: userData) + token
    guard count > creation else { return }
    throw problem(command, "\"userDatas\"", count, creation)
  }

  /// Checks a new token.
  /// - Parameter userData: of the session that it will create.
  /// - Throws: 39008.
  func check(token: Int, _ userData: JSONValue?) throws(DialogError) {
    let count = bytes(of: userData) + token
    guard count > creation else { return }
    throw problem("refreshAuth", "\"token\"", count, creation)
  }

  /// Checks the data of an event.
  /// - Throws: 39008: the dialect v1 cannot say how long they are.
  func check(data: JSONValue?, _ member: String, _ command: String) throws(DialogError) {
    let most = Self.mostOldData - Self.allowance
    guard dialect == .v1, let count = data?.bytes.count, count > most else { return }
    throw .tuya(
      .invalidPacket, "\"\(command)\": \(member) has \(count) bytes, and \(most) fit a packet; shorten it",
      scope: .command)
  }

  private func problem(_ command: String, _ member: String, _ count: Int, _ most: Int) -> DialogError {
    .tuya(
      .invalidPacket,
      "\"\(command)\": with \(member) the packet would have \(count) bytes of texts and user data, and \(most) fit; shorten \(member), or raise \"maxFragment\"",
      scope: .command)
  }
}
