internal import CRtcShim

/// A protection profile of SRTP, by its number in DTLS (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
package enum SRTPProfile: Int32, Sendable, CaseIterable {
  case aes128CMSHA1 = 1
  case aes128GCM = 7
  case aes256GCM = 8

  /// Bytes of the master key.
  package var keyBytes: Int { self == .aes256GCM ? 32 : 16 }
  /// Bytes of the master salt.
  package var saltBytes: Int { self == .aes128CMSHA1 ? 14 : 12 }
}

/// The keys of both directions: each a master key followed by its salt.
package struct SRTPKeys: Sendable, Equatable {
  package var profile: SRTPProfile
  package var outbound: [UInt8]
  package var inbound: [UInt8]

  package init(_ profile: SRTPProfile, outbound: [UInt8], inbound: [UInt8]) {
    self.profile = profile
    self.outbound = outbound
    self.inbound = inbound
  }

  /// The keys as DTLS exports them: client key, server key, client salt, server salt (RFC 5764 section 4.2).
  init(_ profile: SRTPProfile, exported: [UInt8], isClient: Bool) {
    let (key, salt) = (profile.keyBytes, profile.saltBytes)
    let client = exported[..<key] + exported[(2 * key)..<(2 * key + salt)]
    let server = exported[key..<(2 * key)] + exported[(2 * key + salt)...]
    self.profile = profile
    outbound = Array(isClient ? client : server)
    inbound = Array(isClient ? server : client)
  }
}

/// SRTP and SRTCP in one direction (RFC 3711). On one thread at a time.
@safe
package final class SRTPContext {
  /// What became of a packet.
  package enum Outcome: Sendable, Equatable {
    /// Its new length.
    case done(Int)
    /// It came before, or is older than the window.
    case replayed
    /// The peer's keys did not make it.
    case forged
    /// It is no packet.
    case malformed
  }

  /// Bytes that protection adds at most.
  package static var trailer: Int { millrace_srtp_trailer }
  /// How many packets may come late: a burst of a second of video.
  private static let window: UInt32 = 512

  private let handle: OpaquePointer

  /// Creates a context for the streams of a direction.
  package init(_ profile: SRTPProfile, key: [UInt8], isOutbound: Bool) throws(RTCProblem) {
    guard key.count == profile.keyBytes + profile.saltBytes else {
      throw .value(
        "an SRTP key of \(key.count) bytes; \(profile) takes \(profile.keyBytes + profile.saltBytes)")
    }
    guard let handle = unsafe millrace_srtp_new(profile.rawValue, key, isOutbound, Self.window) else {
      throw .library("libsrtp2 could not make a context for \(profile)")
    }
    unsafe self.handle = unsafe handle
  }

  deinit { unsafe millrace_srtp_free(handle) }

  /// Protects a packet of `count` bytes in place; `trailer` bytes of room are behind it.
  package func protect(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) -> Outcome {
    guard let start = packet.baseAddress, packet.count >= count + Self.trailer else { return .malformed }
    var length = count
    let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
    return outcome(unsafe millrace_srtp_protect(handle, isRTCP, bytes, &length), length)
  }

  /// Checks and decrypts a packet in place.
  package func unprotect(_ packet: UnsafeMutableRawBufferPointer, isRTCP: Bool) -> Outcome {
    guard let start = packet.baseAddress else { return .malformed }
    var length = packet.count
    let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
    return outcome(unsafe millrace_srtp_unprotect(handle, isRTCP, bytes, &length), length)
  }

  /// Forgets a stream: it may begin again with any sequence number.
  package func forget(_ ssrc: UInt32) { unsafe millrace_srtp_forget(handle, ssrc) }

  private func outcome(_ status: millrace_srtp_status, _ count: Int) -> Outcome {
    switch status {
    case millrace_srtp_ok: .done(count)
    case millrace_srtp_replayed: .replayed
    case millrace_srtp_forged: .forged
    default: .malformed
    }
  }
}
