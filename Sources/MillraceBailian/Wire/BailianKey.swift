/// The service's key, which goes into a header of the request.
enum BailianKey {
  /// What no header may hold, RFC 9110 section 5.5; tabs are allowed.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }
}
