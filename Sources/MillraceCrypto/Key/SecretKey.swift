internal import Crypto

/// A secret key. It never prints its bytes, is compared in constant time, and its memory is overwritten when the last copy is gone.
///
/// The bytes cannot be read back. The array or text that a key was made from is not overwritten; do not keep it. Usable from any thread.
public struct SecretKey: Sendable {
  let symmetric: SymmetricKey

  /// Creates a key from bytes, which are copied. Each cipher documents the lengths it takes; `HMAC` and `HKDF` take any.
  public init(_ bytes: Span<UInt8>) {
    symmetric = unsafe bytes.bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
  }

  /// Creates a key from the UTF-8 of a text, such as the application secret or access token that a service issues.
  public init(utf8 text: String) { self.init(text.utf8.span) }

  init(_ symmetric: SymmetricKey) { self.symmetric = symmetric }

  /// The length of the key in bytes.
  public var byteCount: Int { symmetric.bitCount / 8 }
}

extension SecretKey: Equatable {
  /// Returns true when both keys hold the same bytes, in a time that does not depend on where they differ.
  public static func == (first: SecretKey, second: SecretKey) -> Bool { first.symmetric == second.symmetric }
}

// Interpolation, logs and `dump` use one of these. Without them they would print what is stored.
extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The same text for every key.
  public var description: String { "SecretKey(hidden)" }
  /// The same text for every key.
  public var debugDescription: String { description }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
