/// Comparison of signatures and tokens, whose bytes an attacker could otherwise find one by one from the time an answer takes.
public enum ConstantTime {
  /// Returns true when both hold the same bytes, in a time that depends on their lengths but not on where they differ.
  ///
  /// Different lengths return false at once, since the length of a signature is public. Where the length is secret, compare digests.
  public static func areEqual(_ first: Span<UInt8>, _ second: Span<UInt8>) -> Bool {
    guard first.count == second.count else { return false }
    var difference: UInt8 = 0
    for index in first.indices { difference |= first[index] ^ second[index] }
    return difference == 0
  }
}
