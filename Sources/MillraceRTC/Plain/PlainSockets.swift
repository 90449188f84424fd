/// The sockets of a medium: one for RTP and, unless both share it, one for RTCP on the port after it (RFC 3550 section 11). On the thread
/// of their loop.
struct PlainSockets {
  /// Takes a datagram, and where it comes from.
  typealias Receiver = (UnsafeMutableRawBufferPointer, DatagramAddress) -> Void

  /// The port after a free one may be in use; then another is tried.
  private static let attempts = 32

  let packets: DatagramSocket
  /// Nil: RTCP goes over the socket of RTP.
  let reports: DatagramSocket?

  /// Binds them.
  /// - Throws: that an address or a port cannot be used, as a message.
  init(
    _ settings: PlainSettings, on loop: RTCLoop, packets takePacket: @escaping Receiver,
    reports takeReport: @escaping Receiver
  ) throws(RTCProblem) {
    if settings.port == .max && !settings.hasRTCPMux {
      throw .value("RTCP has no port after 65535; take another port, or let RTCP share it (\"rtcpMux\")")
    }
    var (first, second): (DatagramSocket?, DatagramSocket?)
    var left = settings.port == 0 ? Self.attempts : 1
    repeat {
      let socket = try unsafe DatagramSocket(
        address: settings.address, port: settings.port, on: loop, receive: takePacket)
      left -= 1
      if settings.hasRTCPMux {
        first = socket
      } else {
        do throws(RTCProblem) {
          guard let port = socket.local.next?.port else { throw .value("no port is left for RTCP") }
          second = try unsafe DatagramSocket(
            address: settings.address, port: port, on: loop, receive: takeReport)
          first = socket
        } catch {
          socket.close()
          if left == 0 { throw .value("RTCP has the port after that of RTP, and cannot use it: \(error)") }
        }
      }
    } while first == nil && left > 0
    guard let first else { throw .library("no two ports in a row were free") }
    packets = first
    reports = second
  }

  /// Frees the ports.
  func close() {
    packets.close()
    reports?.close()
  }
}
