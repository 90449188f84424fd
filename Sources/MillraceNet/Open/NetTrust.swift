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

  /// The settings for one host: the same object for all connections with the same trust.
  func context(for address: WebAddress) throws(NetProblem) -> NIOSSLContext {
    if case .anybody = self, !address.isLoopback {
      throw NetProblem(
        .tls,
        "the certificate of \"\(address.host)\" has to be verified; only this machine's own need not be")
    }
    var key = TLSContexts.Key(trust: self)
    if case .file(let path) = self { key.stamps = [TLSContexts.Stamp(of: path)] }
    return try TLSContexts.shared.find(key) { () throws(NetProblem) in
      TLSContexts.Made(context: try makeContext())
    }.context
  }

  private func makeContext() throws(NetProblem) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    // The name is looked at by `ServerName`.
    configuration.certificateVerification = .noHostnameVerification
    configuration.shutdownTimeout = Self.shutdown
    switch self {
    case .system: break
    case .file(let path): configuration.trustRoots = .file(path)
    case .anybody: configuration.certificateVerification = .none
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

  /// The settings of a server, and its own certificate: the same objects until one of the files changes.
  func context() throws(NetProblem) -> TLSContexts.Made {
    let key = TLSContexts.Key(
      identity: self, stamps: [TLSContexts.Stamp(of: certificate), TLSContexts.Stamp(of: key)])
    return try TLSContexts.shared.find(key) { () throws(NetProblem) in try makeContext() }
  }

  private func makeContext() throws(NetProblem) -> TLSContexts.Made {
    do {
      let certificates = try NIOSSLCertificate.fromPEMFile(certificate)
      let chain = certificates.map { NIOSSLCertificateSource.certificate($0) }
      let key = try NIOSSLPrivateKey(file: key, format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.shutdownTimeout = NetTrust.shutdown
      return TLSContexts.Made(
        context: try NIOSSLContext(configuration: configuration), certificate: certificates.first)
    } catch {
      throw NetProblem(.tls, "\"\(certificate)\" and \"\(self.key)\" are no certificate and its key (PEM)")
    }
  }
}
