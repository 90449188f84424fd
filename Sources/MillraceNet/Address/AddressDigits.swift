internal import Glibc

/// Numeric IP addresses: `127.0.0.1`, `::1`.
enum AddressDigits {
  /// The bytes of a numeric address in network byte order, or nil when the text is not one.
  static func bytes(of host: String) -> [UInt8]? {
    var four = [UInt8](repeating: 0, count: 4)
    if unsafe inet_pton(AF_INET, host, &four) == 1 { return four }
    var sixteen = [UInt8](repeating: 0, count: 16)
    return unsafe inet_pton(AF_INET6, host, &sixteen) == 1 ? sixteen : nil
  }
}
