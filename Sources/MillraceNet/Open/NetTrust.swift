internal import NIOCore
internal import NIOSSL

/// Whose certificates are believed.
public enum NetTrust: Sendable, Hashable {
  /// Those the system believes.
  case system
  /// Those that a file of certificates (PEM) vouches for, and no others.
  case file(String)
  /// Anybody's. Only for a host that is this machine: everywhere else the connection is refused.
  case anybody

  /// How long the other side has to end TLS with a word.
  static let shutdown: TimeAmount = .seconds(2)

  /// The settings for one host.
  func context(for address: WebAddress) throws(NetProblem) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    // The name is looked at by `ServerName`.
    configuration.certificateVerification = .noHostnameVerification
    configuration.shutdownTimeout = Self.shutdown
    switch self {
    case .system: break
    case .file(let path): configuration.trustRoots = .file(path)
    case .anybody:
      guard address.isLoopback else {
        throw NetProblem(
          .tls,
          "the certificate of \"\(address.host)\" has to be verified; only this machine's own need not be")
      }
      configuration.certificateVerification = .none
    }
    do { return try NIOSSLContext(configuration: configuration) } catch {
      guard case .file(let path) = self else { throw NetProblem(.tls, "TLS cannot be set up: \(error)") }
      throw NetProblem(.tls, "\"\(path)\" cannot be read as certificates (PEM)")
    }
  }
}

/// A certificate and its key, for servers.
public struct NetIdentity: Sendable, Hashable {
  /// Files in PEM.
  public var certificate: String
  /// The file of the key, in PEM too.
  public var key: String

  /// Both by their files, which are not looked at before `check`.
  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }

  /// Reads both, and says what is wrong with them: before anything waits for visitors.
  public func check() throws(NetProblem) { _ = try context() }

  func context() throws(NetProblem) -> NIOSSLContext {
    do {
      let chain = try NIOSSLCertificate.fromPEMFile(certificate).map {
        NIOSSLCertificateSource.certificate($0)
      }
      let key = try NIOSSLPrivateKey(file: key, format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.shutdownTimeout = NetTrust.shutdown
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw NetProblem(.tls, "\"\(certificate)\" and \"\(self.key)\" are no certificate and its key (PEM)")
    }
  }
}
