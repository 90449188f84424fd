/// Why the transport has failed.
package enum PeerFailure: Error, Sendable, Equatable {
  /// The handshake failed, in OpenSSL's words.
  case handshake(String)
  /// The certificate is not the one of the description.
  case fingerprint
  /// No profile of SRTP in common.
  case noProfile
  /// A library refuses.
  case library(RTCProblem)
}

/// Where a `PeerTransport` stands.
package enum PeerState: Sendable, Equatable {
  /// The peer is not known, or ICE checks its addresses.
  case connecting
  /// A pair of addresses works: the handshake.
  case securing
  /// Packets pass, protected.
  case connected
  /// The pair of addresses does not work any more. It may again, or another may.
  case disconnected
  /// The peer has ended the connection.
  case closed
  case failed(PeerFailure)
}

/// What a `PeerTransport` reports, on the thread of its loop.
package protocol PeerObserver: AnyObject {
  func peerFound(_ candidate: String)
  func peerGathered()
  func peerChanged(_ state: PeerState)
  /// A packet of RTP or RTCP, decrypted. It is valid only during the call.
  func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool)
  func peerReceived(_ event: SCTPAssociation.Event)
}

/// How many packets were not taken, and why.
package struct PeerRefusals: Sendable, Equatable {
  /// The peer's keys did not make them.
  package var forged = 0
  /// They came before.
  package var replayed = 0
  /// They were no packets of any protocol here.
  package var malformed = 0
  /// They came before the keys were there, or the handshake had begun.
  package var early = 0
  /// They came from more sources than one peer may have.
  package var sources = 0
}
