internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore

/// A message that the sender put into a picture: H.264's SEI user data unregistered (ITU-T H.264, D.1.7). Services use it for what has to
/// stay in step with the picture.
struct UserData: Sendable {
  /// The 16 bytes that name its kind (ISO/IEC 11578).
  let uuid: [UInt8]
  /// What follows; nil if there are more than `most` bytes of it.
  let payload: [UInt8]?
  /// Length of the payload in bytes.
  let byteCount: Int

  /// Longest payload that is passed on, in bytes: as Base64 it fits into an event. Services send some hundred bytes of JSON.
  static let most = 2_048
  /// Longest text with its escapes, in bytes: as long as the longest payload in Base64.
  private static let mostEscaped = (most + 2) / 3 * 4
  /// Most messages of a picture.
  static let mostOfPicture = 16
  private static let uuidBytes = 16

  /// The messages of a decoded picture, in the order of the stream.
  static func all(of frame: UnsafePointer<AVFrame>) -> [UserData] {
    var result: [UserData] = []
    for index in unsafe 0..<Int(frame.pointee.nb_side_data) where result.count < mostOfPicture {
      guard let data = unsafe frame.pointee.side_data[index],
        unsafe data.pointee.type == millrace_av_user_data, unsafe data.pointee.size >= uuidBytes
      else { continue }
      let bytes = unsafe UnsafeBufferPointer(start: data.pointee.data, count: Int(data.pointee.size))
      let payload = unsafe bytes.dropFirst(uuidBytes)
      result.append(
        unsafe UserData(
          uuid: Array(bytes.prefix(uuidBytes)), payload: payload.count <= most ? Array(payload) : nil,
          byteCount: payload.count))
    }
    return result
  }

  /// The UUID in its usual form of 36 characters, as UTF-8.
  var name: [UInt8] {
    var text: [UInt8] = []
    for (index, byte) in uuid.enumerated() {
      if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
      for digit in [byte >> 4, byte & 15] {
        text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      }
    }
    return text
  }

  /// The payload as text, without the zero bytes that may end it; nil if it is not text, or too long with the escapes of JSON.
  var text: [UInt8]? {
    guard var text = payload else { return nil }
    while text.last == 0 { text.removeLast() }
    let isText = text.allSatisfy { $0 >= 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    guard isText, Self.escapedLength(of: text) <= Self.mostEscaped else { return nil }
    return String(validating: text, as: UTF8.self) != nil ? text : nil
  }

  /// Length in a JSON string of an event, where control characters take six bytes.
  private static func escapedLength(of text: [UInt8]) -> Int {
    text.reduce(0) { length, byte in
      switch byte {
      case 0..<0x20: length + 6
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): length + 2
      default: length + 1
      }
    }
  }
}

/// A decoded picture of a live stream, with the messages that came with it.
struct PulledPicture {
  let picture: DecodedPicture
  var messages: [UserData]
}
