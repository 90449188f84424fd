internal import Glibc
public import MillraceCore

/// A token that is given once and for all.
public struct GivenToken: TokenSource {
  private let text: String

  /// - Parameter text: the token, a secret.
  public init(_ text: String) { self.text = text }

  public func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let token = ServiceToken(text)
    clock.run { done(.success(token)) }
  }
}

/// A token in an environment variable of the process.
public struct EnvironmentToken: TokenSource {
  private let name: String

  /// - Parameter name: of the variable.
  public init(_ name: String) { self.name = name }

  public func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let text = unsafe getenv(name).map { unsafe String(cString: $0) } ?? ""
    let result: Result<ServiceToken, TokenFailure> =
      text.isEmpty
      ? .failure(
        TokenFailure("the environment variable \(name) is not set; set it to the token", isFinal: true))
      : .success(ServiceToken(text))
    clock.run { done(result) }
  }
}

/// A token in a file, which another program renews: it is read again for every new connection.
///
/// The file holds the token alone; white space around it is not part of it. It is valid for as long as `life` says, after which it is read
/// again.
public struct FileToken: TokenSource {
  /// The longest token, in bytes: headers of 16 KiB are what servers usually take.
  public static let mostBytes = 16_384

  private let path: String
  private let life: Nanoseconds?

  /// - Parameters:
  ///   - path: of the file.
  ///   - life: after this time the file is read again; nil: only for a new connection.
  public init(_ path: String, life: Nanoseconds? = nil) {
    self.path = path
    self.life = life
  }

  public func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let (path, life) = (path, life)
    // A file may be on another machine: reading it must not hold up the event loop.
    Task {
      let result = Self.read(path)
      clock.run {
        done(result.map { ServiceToken($0, expiry: life.map { clock.now &+ $0 }) })
      }
    }
  }

  private static func read(_ path: String) -> Result<String, TokenFailure> {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let reason = unsafe String(cString: strerror(errno))
      return .failure(
        TokenFailure("cannot read the token from \"\(path)\": \(reason.lowercased())", isFinal: false))
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
    var count = 0
    while count < bytes.count {
      let read = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(file, $0.baseAddress! + count, $0.count - count)
      }
      if read < 0 && errno == EINTR { continue }
      guard read >= 0 else {
        let reason = unsafe String(cString: strerror(errno))
        return .failure(
          TokenFailure("cannot read the token from \"\(path)\": \(reason.lowercased())", isFinal: false))
      }
      if read == 0 { break }
      count += read
    }
    guard count <= mostBytes else {
      return .failure(
        TokenFailure("\"\(path)\" is larger than \(mostBytes) bytes: it is no token", isFinal: true))
    }
    guard let content = String(validating: bytes[..<count], as: UTF8.self) else {
      return .failure(TokenFailure("\"\(path)\" is not text: it is no token", isFinal: true))
    }
    let text = content.drop(while: \.isWhitespace)
    let token = String(text.reversed().drop(while: \.isWhitespace).reversed())
    guard !token.isEmpty else {
      return .failure(
        TokenFailure("\"\(path)\" is empty; another program has to write the token", isFinal: false))
    }
    guard !token.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      return .failure(
        TokenFailure("\"\(path)\" has several lines; it must hold the token alone", isFinal: true))
    }
    return .success(token)
  }
}
