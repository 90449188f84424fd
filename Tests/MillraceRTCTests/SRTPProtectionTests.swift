import Testing

@testable import MillraceRTC

@Suite("SRTP with a limit of sources")
struct SRTPProtectionTests {
  /// Sources that a peer may have.
  private static let most = 128

  private func protection(_ profile: SRTPProfile = .aes128GCM) throws -> SRTPProtection {
    let key = [UInt8](repeating: 7, count: profile.keyBytes + profile.saltBytes)
    return try SRTPProtection(SRTPKeys(profile, outbound: key, inbound: key))
  }

  private func protect(_ packet: [UInt8], _ sender: SRTPProtection) throws -> [UInt8] {
    var bytes = packet + [UInt8](repeating: 0, count: SRTPContext.trailer)
    let count = bytes.withUnsafeMutableBytes { sender.protect($0, count: packet.count, isRTCP: false) }
    return Array(bytes.prefix(try #require(count)))
  }

  private func isTaken(
    _ packet: [UInt8], _ receiver: SRTPProtection, _ refusals: inout PeerRefusals
  ) -> Bool {
    var bytes = packet
    return bytes.withUnsafeMutableBytes { receiver.unprotect($0, isRTCP: false, &refusals) != nil }
  }

  private func packet(_ ssrc: UInt32) -> [UInt8] {
    TestPacket.rtp(96, sequence: 1, ssrc: ssrc, payload: [1, 2, 3])
  }

  @Test(
    "the same packet may be sent again, and has the same bytes; it is received once",
    arguments: SRTPProfile.allCases)
  func repeated(_ profile: SRTPProfile) throws {
    let (sender, receiver) = (try protection(profile), try protection(profile))
    let first = try protect(packet(1), sender)
    #expect(try protect(packet(1), sender) == first)
    var refusals = PeerRefusals()
    #expect(isTaken(first, receiver, &refusals))
    #expect(!isTaken(first, receiver, &refusals) && refusals.replayed == 1)
  }

  @Test("an ended source makes room for a new one, but not for packets that nobody with the keys has sent")
  func eviction() throws {
    let (sender, receiver) = (try protection(), try protection())
    var refusals = PeerRefusals()
    let packets = try (1...UInt32(Self.most)).map { try protect(packet($0), sender) }
    for packet in packets { #expect(isTaken(packet, receiver, &refusals)) }
    let next = try protect(packet(1_000), sender)
    #expect(!isTaken(next, receiver, &refusals) && refusals.sources == 1)
    receiver.noteEnd(of: 1)
    var forged = next
    forged[14] ^= 1
    #expect(!isTaken(forged, receiver, &refusals) && refusals.forged == 1)
    // The ended source is still known: its packets cannot be repeated.
    #expect(!isTaken(packets[0], receiver, &refusals) && refusals.replayed == 1)
    #expect(isTaken(next, receiver, &refusals))
    #expect(!isTaken(packets[1], receiver, &refusals) && refusals.replayed == 2)
  }
}
