internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// Messages for errors of the system and of the libraries below.
enum NetErrorMessages {
  static func text(errno code: Int32) -> String {
    switch code {
    case ECONNREFUSED: "connection refused"
    case ETIMEDOUT: "timed out"
    case ENETUNREACH, EHOSTUNREACH: "no route to host"
    case ECONNRESET, EPIPE: "connection reset"
    case EADDRINUSE: "address in use"
    case EADDRNOTAVAIL: "address not available"
    case EAFNOSUPPORT: "address family not supported"
    case EACCES: "permission denied"
    case EMFILE: "too many open files in this process; raise its limit (ulimit -n)"
    case ENFILE: "too many open files on this machine; raise its limit (fs.file-max)"
    default: "error \(code)"
    }
  }

  /// The error of a server that cannot listen.
  static func listening(on host: String, _ port: Int, _ error: any Error) -> NetError {
    let code = (error as? IOError)?.errnoCode
    let reason = code.map { text(errno: $0) } ?? "\(error)"
    var problem = NetError(.connect, "cannot listen on \(host):\(port): \(reason)")
    switch code {
    case EADDRINUSE?: problem.obstacle = .inUse
    case EADDRNOTAVAIL?, EAFNOSUPPORT?: problem.obstacle = .notAvailable
    case EACCES?, EPERM?: problem.obstacle = .notPermitted
    default: break
    }
    return problem
  }

  /// The error that ended an open connection.
  static func error(_ error: any Error, _ peer: String, _ host: String) -> NetError {
    switch error {
    case let error as NetError: return error
    case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: return tls(error, peer, host)
    case is HTTPParserError: return NetError(.protocolError, "\(peer) sent an invalid HTTP response")
    case let error as IOError:
      return NetError(.lost, "connection to \(peer) lost: \(text(errno: error.errnoCode))")
    default: return NetError(.lost, "connection to \(peer) lost: \(error)")
    }
  }

  private static func closedDuringHandshake(_ peer: String) -> NetError {
    NetError(.lost, "\(peer) closed the connection during the TLS handshake")
  }

  private static func tls(_ error: any Error, _ peer: String, _ host: String) -> NetError {
    let detail = "\(error)"
    if detail.contains("CERTIFICATE_VERIFY_FAILED") {
      return NetError(
        .tls, "certificate of \(peer) not trusted: no authority that this machine trusts has signed it")
    }
    if detail.contains("WRONG_VERSION_NUMBER") || detail.contains("HTTP_REQUEST") {
      return NetError(
        .tls, "\(peer) does not speak TLS; check the port, or use an address without TLS")
    }
    switch error as? NIOSSLError {
    case .uncleanShutdown?:
      return NetError(.lost, "\(peer) closed the connection without a TLS close alert")
    case .handshakeFailed(.zeroReturn)?, .handshakeFailed(.syscallError)?:
      return closedDuringHandshake(peer)
    case .handshakeFailed(.sslError(let stack))? where stack == [.eofDuringHandshake]:
      return closedDuringHandshake(peer)
    default: break
    }
    return NetError(.tls, "TLS handshake with \(peer) failed: \(detail)")
  }
}
