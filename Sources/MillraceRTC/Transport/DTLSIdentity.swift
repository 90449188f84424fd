internal import CRtcShim

/// A key and a self-signed certificate by which the peer recognises this program: an EC key on P-256.
///
/// Making one takes about a millisecond, and a handshake with an RSA key takes ten times as long; one serves all sessions of a process.
@safe
public final class DTLSIdentity: @unchecked Sendable {
  let handle: OpaquePointer
  /// The SHA-256 digest of the certificate, which the SDP names.
  public let fingerprint: [UInt8]

  /// The identity of this process, made when it is first used.
  public static let process: Result<DTLSIdentity, RTCProblem> = Result { () throws(RTCProblem) in
    try DTLSIdentity()
  }

  /// Makes an identity.
  public init() throws(RTCProblem) {
    guard let handle = unsafe millrace_dtls_identity_new() else {
      throw .library("OpenSSL could not make a certificate on the curve P-256")
    }
    unsafe self.handle = unsafe handle
    var digest = [UInt8](repeating: 0, count: 32)
    unsafe digest.withUnsafeMutableBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return }
      unsafe millrace_dtls_identity_fingerprint(handle, start)
    }
    fingerprint = digest
  }

  deinit { unsafe millrace_dtls_identity_free(handle) }
}
