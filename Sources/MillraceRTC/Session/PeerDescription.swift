package import MillraceRTCWire

/// What the peer's description says about the transport.
package struct PeerDescription: Sendable, Equatable {
  /// Data channels.
  package struct Data: Sendable, Equatable {
    package var localPort: UInt16
    package var remotePort: UInt16
    /// Bytes of the largest message that this side takes.
    package var largest: Int

    package init(localPort: UInt16 = 5_000, remotePort: UInt16 = 5_000, largest: Int) {
      self.localPort = localPort
      self.remotePort = remotePort
      self.largest = largest
    }
  }

  package var credentials: ICECredentials
  /// Its certificate has to match one of them.
  package var fingerprints: [CertificateFingerprint]
  /// This side begins the handshake.
  package var isClient: Bool
  /// Nil: no data channels.
  package var data: Data?
  /// Sound or pictures were agreed on, which need keys for SRTP.
  package var hasMedia = true

  package init(_ credentials: ICECredentials, fingerprints: [CertificateFingerprint], isClient: Bool) {
    self.credentials = credentials
    self.fingerprints = fingerprints
    self.isClient = isClient
  }
}
