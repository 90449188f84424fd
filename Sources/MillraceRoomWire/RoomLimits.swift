/// What a connection of the wire `millrace-room.1` agrees on. The wire is described byte for byte in Documentation/room.md.
public enum RoomWire {
  /// The sub-protocol of the WebSocket.
  public static let subprotocol = "millrace-room.1"
  /// The path of the hub's WebSocket.
  public static let path = "/room"
  /// Where the content of a file is sent to by `POST`; a file is read one level below, under its id.
  public static let filesPath = "/files"
  /// The only version that `login` may name.
  public static let version = 1
}

/// The limits of the wire: Documentation/room.md, sections "Connection", "Messages" and "Names".
///
/// A *character* is a Unicode code point: a grapheme has no bound, as it may have any number of combining marks.
public enum RoomLimits {
  /// The most bytes of a message, in either direction. A longer one ends the connection with `tooLongCode`.
  public static let messageBytes = 131_072
  /// The most bytes of JSON that a description, a candidate, a command or the content of `data` may take. The rest of a message is for
  /// its head and for names, so that whatever a hub can read it can also pass on: `\b` has two bytes, and six when it is written again.
  public static let contentBytes = messageBytes - 1_024
  /// The most characters of the name of a user, a room, a peer or a call.
  public static let nameCharacters = 64
  /// The most characters of a display name.
  public static let displayCharacters = 64
  /// The most characters of a text or a reason for people, but not of `data`.
  public static let textCharacters = 4_096
  /// The most characters of a token.
  public static let tokenCharacters = 4_096
  /// The most bytes of a label of `data`, and of the `mid` of a medium.
  public static let labelBytes = 64
  /// The most characters of the name of a file: as many as file systems allow bytes.
  public static let fileNameCharacters = 255
  /// The most bytes of the media type of a file: RFC 6838 section 4.2 has that many for each half, and none needs half of it.
  public static let typeBytes = 127
  /// The sizes of files, in bytes. A hub takes much less.
  static let fileSizes = 0...largestInteger
  /// The ids of requests. The largest is the largest integer that every JSON reader takes exactly (RFC 8259, section 6).
  public static let ids = 1...largestInteger
  /// Times in milliseconds.
  static let milliseconds = 0...largestInteger
  /// Levels in dBov (RFC 6464, section 3): 0 is the loudest, -127 is silence.
  public static let levels = -127...0
  private static let largestInteger = (1 << 53) - 1

  /// The hub sends a WebSocket ping every so many seconds.
  public static let pingSeconds = 10
  /// A member that was not heard for so many seconds is gone.
  public static let silenceSeconds = 30
  /// The hub closes a connection after so many messages that were no requests, with `policyCode`.
  public static let badMessages = 16

  /// The close code of a WebSocket (RFC 6455 section 7.4.1) after a binary frame.
  public static let binaryCode: UInt16 = 1003
  /// The close code after `badMessages` messages that were no requests.
  public static let policyCode: UInt16 = 1008
  /// The close code after a message that is too long.
  public static let tooLongCode: UInt16 = 1009
}
