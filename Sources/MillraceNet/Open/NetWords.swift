internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// Failures of the libraries below in words of ours.
enum NetWords {
  static func text(errno code: Int32) -> String {
    switch code {
    case ECONNREFUSED: "nobody listens there"
    case ETIMEDOUT: "no answer"
    case ENETUNREACH, EHOSTUNREACH: "no way there"
    case ECONNRESET, EPIPE: "it hung up"
    case EADDRINUSE: "the port is taken"
    case EACCES: "this user may not"
    case EMFILE: "this process may open no more files; raise its limit (ulimit -n)"
    case ENFILE: "this machine may open no more files; raise its limit (fs.file-max)"
    default: "error \(code)"
    }
  }

  /// What ended a connection that was there.
  static func problem(_ error: any Error, _ place: String, _ host: String) -> NetProblem {
    switch error {
    case let error as NetProblem: return error
    case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: return tls(error, place, host)
    case is HTTPParserError: return NetProblem(.garbled, "\(place) answers something that is no HTTP")
    case let error as IOError: return NetProblem(.lost, "\(place) is gone: \(text(errno: error.errnoCode))")
    default: return NetProblem(.lost, "\(place) is gone: \(error)")
    }
  }

  private static func tls(_ error: any Error, _ place: String, _ host: String) -> NetProblem {
    let detail = "\(error)"
    if detail.contains("CERTIFICATE_VERIFY_FAILED") {
      return NetProblem(
        .tls, "the certificate of \(place) does not verify; nobody this machine believes vouches for it")
    }
    if detail.contains("WRONG_VERSION_NUMBER") || detail.contains("HTTP_REQUEST") {
      return NetProblem(
        .tls, "\(place) does not speak TLS; perhaps the address should begin with ws: or http:")
    }
    switch error as? NIOSSLError {
    case .uncleanShutdown?: return NetProblem(.lost, "\(place) hung up without a good-bye")
    case .handshakeFailed(.zeroReturn)?, .handshakeFailed(.syscallError)?:
      return NetProblem(.lost, "\(place) hung up before TLS was there")
    default: break
    }
    return NetProblem(.tls, "no secure connection with \(place): \(detail)")
  }
}
