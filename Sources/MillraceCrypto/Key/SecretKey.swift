internal import CCrypto

/// A secret key. It never prints its bytes, is compared in constant time, and its memory is overwritten when the last copy is gone.
///
/// The bytes cannot be read back. The array or text that a key was made from is not overwritten; do not keep it. Usable from any thread.
public struct SecretKey: Sendable {
  private let storage: Storage

  /// Creates a key from bytes, which are copied. Each cipher documents the lengths it takes; `HMAC` and `HKDF` take any.
  public init(_ bytes: Span<UInt8>) {
    storage = Storage(count: bytes.count)
    for index in bytes.indices { unsafe storage.bytes[index] = bytes[index] }
  }

  /// Creates a key from the UTF-8 of a text, such as the application secret or access token that a service issues.
  public init(utf8 text: String) { self.init(text.utf8.span) }

  /// Creates a key of a length, whose bytes the closure writes.
  init(count: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    storage = Storage(count: count)
    unsafe write(storage.bytes)
  }

  /// The length of the key in bytes.
  public var byteCount: Int { unsafe storage.bytes.count }

  /// Calls a closure with the bytes, which it must not keep. There is an address even where there are no bytes.
  func withBytes<Result: ~Copyable>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    let result = unsafe body(UnsafeBufferPointer(storage.bytes))
    withExtendedLifetime(storage) {}
    return result
  }

  /// Memory that is overwritten before others get it.
  @safe
  private final class Storage: @unchecked Sendable {
    // Written by `init` of the key only.
    let bytes: UnsafeMutableBufferPointer<UInt8>

    init(count: Int) {
      unsafe bytes = .init(start: UnsafeMutablePointer.allocate(capacity: max(1, count)), count: count)
      unsafe bytes.initialize(repeating: 0)
    }

    deinit {
      unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
      unsafe bytes.baseAddress?.deallocate()
    }
  }
}

extension SecretKey: Equatable {
  /// Returns true when both keys hold the same bytes, in a time that does not depend on where they differ.
  public static func == (first: SecretKey, second: SecretKey) -> Bool {
    unsafe first.withBytes { first in
      unsafe second.withBytes { second in
        unsafe ConstantTime.areEqual(first.span, second.span)
      }
    }
  }
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
