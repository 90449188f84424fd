internal import CRtcShim

/// An SCTP association below data channels (RFC 8831), over packets that somebody else carries. On the thread that made it.
@safe
package final class SCTPAssociation {
  /// What has happened.
  package enum Event: Sendable, Equatable {
    case connected
    /// It was refused, was lost or has ended.
    case ended
    /// The peer has closed these streams; none: all.
    case closed(streams: [UInt16])
    /// A whole message.
    case message(stream: UInt16, protocol: UInt32, bytes: [UInt8])
    /// A message was larger than `largest`, or too many had begun, and is dropped: the stream it came on, and its bytes.
    case tooLarge(stream: UInt16, count: Int)
  }

  /// How a message is delivered.
  package struct Delivery: Sendable, Hashable {
    /// How long, or how often, a message is tried.
    package enum Reliability: Sendable, Hashable {
      case complete
      case lifetime(milliseconds: UInt32)
      case retransmissions(UInt32)
    }
    package var isOrdered = true
    package var reliability = Reliability.complete

    package init() {}
  }

  /// What became of a message to send.
  package enum Result: Sendable, Equatable {
    case sent
    /// No room now.
    case full
    /// Larger than the whole buffer.
    case tooLarge
    /// The association does not take it.
    case unsent
  }

  /// Milliseconds between two calls of `tick`.
  package static let tickMilliseconds = 10
  /// Bytes of a packet: a datagram of DTLS without what DTLS adds at most.
  private static let packetBytes: UInt16 = 1_150
  /// Bytes of the largest message that this side takes, however large the peer may send them.
  package static let largestMessage = 1 << 20
  /// Bytes that may wait in each direction: a message of the largest size, twice.
  static let bufferBytes: UInt32 = 2 << 20
  private static let readBytes = 65_536

  private var handle: OpaquePointer?
  private var partial: PartialMessages
  /// Its end is reported once, and nothing is read behind it.
  private var hasEnded = false
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 8)
  private let sendPacket: (UnsafeRawBufferPointer) -> Void
  private let entry: RTCLoop.Entry

  /// Creates an association and sends its first packet, once DTLS has connected and before anything of the peer is fed.
  /// - Parameters:
  ///   - largest: bytes of the largest message that is taken; 0: `largestMessage`, which is also the limit.
  ///   - entry: is woken when packets wait.
  ///   - send: sends a packet.
  package init(
    localPort: UInt16, remotePort: UInt16, largest: Int, entry: RTCLoop.Entry,
    send: @escaping (UnsafeRawBufferPointer) -> Void
  ) throws(RTCProblem) {
    partial = PartialMessages(
      largest: largest == 0 ? Self.largestMessage : min(largest, Self.largestMessage),
      room: Int(Self.bufferBytes))
    unsafe sendPacket = unsafe send
    self.entry = entry
    let callbacks = unsafe millrace_sctp_callbacks(
      send: { user, bytes, count in
        guard let user = unsafe user else { return }
        let association = unsafe Unmanaged<SCTPAssociation>.fromOpaque(user).takeUnretainedValue()
        unsafe association.sendPacket(UnsafeRawBufferPointer(start: bytes, count: count))
      },
      wake: { user in
        guard let user = unsafe user else { return }
        unsafe Unmanaged<SCTPAssociation>.fromOpaque(user).takeUnretainedValue().entry.wake()
      }, user: Unmanaged.passUnretained(self).toOpaque())
    guard
      let made = unsafe millrace_sctp_new(
        localPort, remotePort, Self.packetBytes, Self.bufferBytes, callbacks)
    else { throw .library("usrsctp could not make an association") }
    unsafe handle = made
  }

  deinit {
    close()
    unsafe memory.deallocate()
  }

  /// Handles a packet of the peer.
  package func feed(_ packet: UnsafeRawBufferPointer) {
    guard let handle = unsafe handle, let start = packet.baseAddress else { return }
    unsafe millrace_sctp_feed(handle, start.assumingMemoryBound(to: UInt8.self), packet.count)
  }

  /// Advances the clock, and sends what is due.
  package func tick() { if let handle = unsafe handle { unsafe millrace_sctp_tick(handle) } }

  /// What has happened since; nil: nothing more. Not reading makes the peer wait.
  package func next() -> Event? {
    guard !hasEnded, let handle = unsafe handle, let start = unsafe memory.baseAddress else { return nil }
    let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
    while true {
      var part = millrace_sctp_part()
      switch unsafe millrace_sctp_read(handle, bytes, Self.readBytes, &part) {
      case millrace_sctp_connected:
        partial.removeAll()
        return .connected
      case millrace_sctp_ended:
        hasEnded = true
        partial.removeAll()
        return .ended
      case millrace_sctp_streams_closed:
        let streams = numbers(part.count / 2)
        // The rest of what had begun on them does not come.
        for stream in streams { partial.remove(stream) }
        return .closed(streams: streams)
      case millrace_sctp_abandoned: partial.remove(part.stream)
      case millrace_sctp_data:
        if let event = unsafe add(UnsafeBufferPointer(start: bytes, count: part.count), part) { return event }
      default: return nil
      }
    }
  }

  /// Numbers of 16 bits at the beginning of the memory.
  private func numbers(_ count: Int) -> [UInt16] {
    (0..<count).map { unsafe memory.load(fromByteOffset: 2 * $0, as: UInt16.self) }
  }

  /// Adds a part of a message. Returns what is complete.
  private func add(_ bytes: UnsafeBufferPointer<UInt8>, _ part: millrace_sctp_part) -> Event? {
    switch unsafe partial.add(bytes, stream: part.stream, isEnd: part.is_end) {
    case .incomplete: nil
    case .message(let message):
      .message(stream: part.stream, protocol: part.protocol, bytes: message)
    case .dropped(let count): .tooLarge(stream: part.stream, count: count)
    }
  }

  /// Sends a message.
  package func send(_ bytes: [UInt8], stream: UInt16, protocol number: UInt32, _ delivery: Delivery) -> Result
  {
    guard let handle = unsafe handle else { return .unsent }
    var request = millrace_sctp_delivery(
      stream: stream, protocol: number, is_unordered: !delivery.isOrdered, lifetime_ms: -1,
      retransmissions: -1)
    switch delivery.reliability {
    case .complete: break
    case .lifetime(let time): request.lifetime_ms = Int64(time)
    case .retransmissions(let count): request.retransmissions = Int64(count)
    }
    switch unsafe millrace_sctp_send(handle, bytes, bytes.count, request) {
    case millrace_sctp_sent: return .sent
    case millrace_sctp_full: return .full
    case millrace_sctp_too_large: return .tooLarge
    default: return .unsent
    }
  }

  /// Closes the outgoing half of a stream. False when the peer has not confirmed the last one yet.
  package func close(stream: UInt16) -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe millrace_sctp_close_stream(handle, stream)
  }

  /// Ends at once, with an ABORT.
  package func close() {
    guard let open = unsafe handle else { return }
    unsafe handle = nil
    unsafe millrace_sctp_free(open)
  }
}
