#if RTC
  import Glibc
  import MillraceRTC

  /// What it costs to send the packets of a voice without a hub: SRTP and `sendto`.
  enum RoomPacketCost {
    private static let rounds = 5
    private static let batches = 20
    /// Packets between which the receiving socket is emptied: a second.
    private static let batch = 50
    private static let header = 12
    /// Of the sessions that are measured beside it.
    private static let profile = SRTPProfile.aes128GCM

    /// Percent of a core for one receiver in real time, in some rounds.
    static func shares(_ packets: [[UInt8]]) throws -> [Double] {
      let sender = try LocalSocket.datagrams()
      defer { close(sender.descriptor) }
      let receiver = try LocalSocket.datagrams()
      defer { close(receiver.descriptor) }
      let key = [UInt8](repeating: 7, count: profile.keyBytes + profile.saltBytes)
      let srtp = try SRTPContext(profile, key: key, isOutbound: true)
      var number = 0
      return try (0..<rounds).map { _ in
        var work = 0.0
        for _ in 0..<batches {
          let start = processorSeconds()
          for _ in 0..<batch {
            let packet = try protected(packets[number % packets.count], number, srtp)
            LocalSocket.send(packet, from: sender.descriptor, to: receiver.port)
            number += 1
          }
          work += processorSeconds() - start
          empty(receiver.descriptor)
        }
        return 100 * work / Double(batches)
      }
    }

    /// A packet of RTP (RFC 3550 section 5.1), protected.
    private static func protected(_ payload: [UInt8], _ number: Int, _ srtp: SRTPContext) throws -> [UInt8] {
      let time = UInt32(truncatingIfNeeded: number * RoomOpus.frame)
      var packet: [UInt8] = [0x80, 111, UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
      for shift in [24, 16, 8, 0] as [UInt32] { packet.append(UInt8(time >> shift & 0xFF)) }
      packet += [0, 0, 0, 1]
      packet += payload
      packet += [UInt8](repeating: 0, count: SRTPContext.trailer)
      let count = header + payload.count
      let outcome = unsafe packet.withUnsafeMutableBytes { bytes in
        unsafe srtp.protect(bytes, count: count, isRTCP: false)
      }
      guard case .done(let length) = outcome else { throw MeasurementProblem("libsrtp2 refused a packet") }
      packet.removeLast(packet.count - length)
      return packet
    }

    private static func empty(_ descriptor: Int32) {
      var buffer = [UInt8](repeating: 0, count: 2_048)
      while unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
    }
  }
#endif
