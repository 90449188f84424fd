internal import MillraceRoomWire

/// The ids that a hub gives to peers, calls, the rooms of calls, files and their tickets.
enum RoomID {
  /// 128 random bits, of the system's generator, which is good for secrets: nobody guesses the room of a call, or a file.
  private static let byteCount = 16

  /// A new id, of 22 characters.
  static func random() -> RoomName {
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
    guard let name = RoomName(Base64URL.encode(bytes)) else {
      preconditionFailure("every base64url of \(byteCount) bytes is a name")
    }
    return name
  }
}
