#if RTC
  internal import MillraceCrypto

  /// The key that signs the tokens of a hub, from the environment: arguments and files are seen by others.
  enum RoomKey {
    static let variable = "MILLRACE_ROOM_KEY"
    /// How to make one.
    static let cure = "for example with: export \(variable)=\"$(openssl rand -base64 32)\""

    /// What is wrong with the variable, and the cure.
    struct Problem: Error, CustomStringConvertible { let description: String }

    /// Nil when the variable is not set.
    static func read() throws(Problem) -> SecretKey? {
      guard let text = Environment.value(variable) else { return nil }
      guard !text.isEmpty else {
        throw Problem(description: "\(variable) is empty; unset it, or set the hub's key, \(cure)")
      }
      return SecretKey(utf8: text)
    }

    /// The key; throws where there is none.
    static func require() throws(Problem) -> SecretKey {
      guard let key = try read() else {
        throw Problem(
          description: "there is no key to sign with; set \(variable) to that of the hub, \(cure)")
      }
      return key
    }
  }
#endif
