internal import CCrypto

/// What all calls of OpenSSL share.
enum OpenSSL {
  private static let isPrepared: Bool = {
    // Without this the library takes itself apart when the program ends, while other threads may still be computing.
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
  }()

  /// Must have run before the first other call.
  static func prepare() {
    precondition(isPrepared, "OpenSSL could not be initialised; check its configuration, openssl.cnf")
  }

  /// For calls that fail only when there is no memory, as Swift's own do.
  static func require(_ pointer: OpaquePointer?) -> OpaquePointer {
    guard let pointer = unsafe pointer else { fatalError("OpenSSL has no memory left") }
    return unsafe pointer
  }

  /// For calls that fail only when there is no memory, as Swift's own do.
  static func require(_ result: Int32) {
    guard result == 1 else { fatalError("OpenSSL has no memory left") }
  }

  /// The oldest of the reasons why calls on this thread failed. Forgets them: others who share the library would take them for theirs.
  static func takeReason() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "unknown reason" }
    return unsafe String(cString: text)
  }
}
