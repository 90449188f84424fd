internal import NIOCore
internal import NIOSSL

/// Which certificates are trusted.
public enum NetTrust: Sendable, Hashable {
  /// Those the system trusts.
  case system
  /// Those signed by an authority in this PEM file, and no others.
  case file(String)
  /// Any certificate. Only for a loopback host; for every other host the connection is refused.
  case anyCertificate

  /// The time for the peer to end TLS with a close alert.
  static let shutdown: TimeAmount = .seconds(2)

  /// Loads the certificates for a host ahead of a connection, and throws what is wrong with them.
  package func check(for address: WebAddress) throws(NetError) {
    if address.isSecure { _ = try context(for: address) }
  }

  /// The TLS context for a host; connections with the same trust share it.
  /// - Parameter isOwn: the host is a server of this program.
  func context(for address: WebAddress, isOwn: Bool = false) throws(NetError) -> NIOSSLContext {
    if case .anyCertificate = self, !address.isLoopback, !isOwn {
      throw NetError(
        .tls,
        "the certificate of \"\(address.host)\" must be verified; verification may be disabled only for this machine"
      )
    }
    var key = TLSContexts.Key(trust: self)
    if case .file(let path) = self { key.stamps = [TLSContexts.Stamp(of: path)] }
    return try TLSContexts.shared.find(key) { () throws(NetError) in
      TLSContexts.Made(context: try makeContext())
    }.context
  }

  private func makeContext() throws(NetError) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    // `ServerName` verifies the host name.
    configuration.certificateVerification = .noHostnameVerification
    configuration.shutdownTimeout = Self.shutdown
    switch self {
    case .system: break
    case .file(let path): configuration.trustRoots = .file(path)
    case .anyCertificate: configuration.certificateVerification = .none
    }
    do { return try NIOSSLContext(configuration: configuration) } catch {
      guard case .file(let path) = self else { throw NetError(.tls, "TLS setup failed: \(error)") }
      throw NetError(.tls, "cannot read certificates (PEM) from \"\(path)\"; check the path and the file")
    }
  }
}

/// A server's certificate and private key.
public struct NetIdentity: Sendable, Hashable {
  /// Path of the certificate chain, PEM.
  public var certificate: String
  /// Path of the private key, PEM.
  public var key: String

  /// Creates an identity from two paths. The files are read by `check` or when a server starts.
  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }

  /// Reads both files and throws what is wrong with them, before a server starts.
  public func check() throws(NetError) { _ = try context() }

  /// The server's TLS context and certificate; shared until one of the files changes.
  func context() throws(NetError) -> TLSContexts.Made {
    let key = TLSContexts.Key(
      identity: self, stamps: [TLSContexts.Stamp(of: certificate), TLSContexts.Stamp(of: key)])
    return try TLSContexts.shared.find(key) { () throws(NetError) in try makeContext() }
  }

  private func makeContext() throws(NetError) -> TLSContexts.Made {
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
      throw NetError(.tls, "\"\(certificate)\" and \"\(self.key)\" are not a certificate and its key (PEM)")
    }
  }
}
