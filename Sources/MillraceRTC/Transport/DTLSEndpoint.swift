internal import CRtcShim
package import MillraceCore

/// One end of a DTLS connection over datagrams that somebody else carries (RFC 6347). Sans-IO: bytes and time come in, bytes go out.
///
/// All calls are made on one thread; `send` and `receive` are called within them. The certificate of the peer is not judged here: the owner
/// compares `peerDigest` with the SDP before it uses a key.
package protocol DTLSEndpoint: AnyObject {
  /// The state after the last call.
  var state: DTLSState { get }
  /// A datagram is to be sent. Whether it arrives does not matter: flights are repeated.
  var send: ((UnsafeRawBufferPointer) -> Void)? { get set }
  /// Data of the peer.
  var receive: ((UnsafeRawBufferPointer) -> Void)? { get set }
  /// When `repeatFlight` is due; nil: never.
  func due(at now: Nanoseconds) -> Nanoseconds?
  /// Begins the handshake: a client sends its first flight.
  func start()
  /// Handles a datagram. The owner continues to call it after the handshake: a peer that has lost the last flight repeats its own, and only
  /// what reads it sends ours again.
  func feed(_ datagram: UnsafeRawBufferPointer)
  /// Reads what came together with the end of the handshake. The owner calls it once, after it has begun SCTP.
  func readEarlyData()
  /// Sends the last flight again.
  func repeatFlight()
  /// Sends data of at most a datagram. False when it was not sent.
  func write(_ bytes: UnsafeRawBufferPointer) -> Bool
  /// Sends close_notify.
  func close()
  /// The digest of the peer's certificate by an algorithm's name in SDP; nil without a certificate, or for an unknown algorithm.
  func peerDigest(_ algorithm: String) -> [UInt8]?
  /// What SRTP is to use; nil: the peer did not agree on a profile, or the handshake is not over.
  func srtpKeys() -> SRTPKeys?
}

/// The state of a DTLS connection.
package enum DTLSState: Sendable, Equatable {
  case handshaking, connected
  /// The peer has sent close_notify, or this side has.
  case closed
  /// It cannot be repaired; the reason in OpenSSL's words.
  case failed(String)
}

/// `DTLSEndpoint` by OpenSSL.
@safe
package final class OpenSSLEndpoint: DTLSEndpoint {
  /// Bytes of a datagram: what is left of 1,280 bytes, the least that IPv6 carries everywhere, below IP, UDP and TURN.
  private static let mtu: Int32 = 1_200

  private let identity: DTLSIdentity
  private var handle: OpaquePointer?
  package private(set) var state = DTLSState.handshaking
  package var send: ((UnsafeRawBufferPointer) -> Void)?
  package var receive: ((UnsafeRawBufferPointer) -> Void)?
  private let isClient: Bool

  /// Creates an endpoint that has not started.
  package init(_ identity: DTLSIdentity, isClient: Bool) throws(RTCProblem) {
    self.identity = identity
    self.isClient = isClient
    let user = unsafe Unmanaged.passUnretained(self).toOpaque()
    let callbacks = unsafe millrace_dtls_callbacks(
      send: { user, bytes, count in
        guard let user = unsafe user else { return }
        let endpoint = unsafe Unmanaged<OpenSSLEndpoint>.fromOpaque(user).takeUnretainedValue()
        unsafe endpoint.send?(UnsafeRawBufferPointer(start: bytes, count: count))
      },
      receive: { user, bytes, count in
        guard let user = unsafe user else { return }
        let endpoint = unsafe Unmanaged<OpenSSLEndpoint>.fromOpaque(user).takeUnretainedValue()
        unsafe endpoint.receive?(UnsafeRawBufferPointer(start: bytes, count: count))
      }, user: user)
    guard let made = unsafe millrace_dtls_new(identity.handle, isClient, Self.mtu, callbacks) else {
      throw .library("OpenSSL could not make a DTLS connection")
    }
    unsafe handle = made
  }

  deinit { if let handle = unsafe handle { unsafe millrace_dtls_free(handle) } }

  private func note(_ now: millrace_dtls_state) {
    switch now {
    case millrace_dtls_handshaking: state = .handshaking
    case millrace_dtls_connected: state = .connected
    case millrace_dtls_closed: state = .closed
    default: state = .failed(unsafe handle.map { unsafe String(cString: millrace_dtls_error($0)) } ?? "")
    }
  }

  package func due(at now: Nanoseconds) -> Nanoseconds? {
    guard let handle = unsafe handle else { return nil }
    let wait = unsafe millrace_dtls_due(handle)
    return wait < 0 ? nil : now + wait * 1_000
  }

  package func start() { if let handle = unsafe handle { note(unsafe millrace_dtls_start(handle)) } }

  package func feed(_ datagram: UnsafeRawBufferPointer) {
    guard let handle = unsafe handle, let start = datagram.baseAddress else { return }
    let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
    note(unsafe millrace_dtls_feed(handle, bytes, datagram.count))
  }

  package func readEarlyData() { if let handle = unsafe handle { note(unsafe millrace_dtls_read(handle)) } }

  package func repeatFlight() { if let handle = unsafe handle { note(unsafe millrace_dtls_repeat(handle)) } }

  package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let handle = unsafe handle, let start = bytes.baseAddress else { return false }
    return unsafe millrace_dtls_write(handle, start.assumingMemoryBound(to: UInt8.self), bytes.count)
  }

  package func close() {
    guard let handle = unsafe handle, state == .connected else { return }
    unsafe millrace_dtls_close(handle)
    state = .closed
  }

  package func peerDigest(_ algorithm: String) -> [UInt8]? {
    guard let handle = unsafe handle else { return nil }
    // The longest: SHA-512.
    var digest = [UInt8](repeating: 0, count: 64)
    let count = unsafe digest.withUnsafeMutableBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return 0 }
      return unsafe millrace_dtls_peer_digest(handle, algorithm, start)
    }
    return count == 0 ? nil : Array(digest.prefix(count))
  }

  package func srtpKeys() -> SRTPKeys? {
    guard let handle = unsafe handle, state == .connected,
      let profile = SRTPProfile(rawValue: Int32(unsafe millrace_dtls_srtp_profile(handle)))
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: 2 * (profile.keyBytes + profile.saltBytes))
    let isExported = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return false }
      return unsafe millrace_dtls_export(handle, start, bytes.count)
    }
    return isExported ? SRTPKeys(profile, exported: bytes, isClient: isClient) : nil
  }
}
