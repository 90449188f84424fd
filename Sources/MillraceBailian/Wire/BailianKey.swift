/// The service's key, which is sent in a header.
enum BailianKey {
  /// Characters a header must not contain, RFC 9110 section 5.5; tabs are allowed.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }
}
