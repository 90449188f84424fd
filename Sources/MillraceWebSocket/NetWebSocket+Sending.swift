internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// Sending: from the graph to the connection.
extension NetWebSocket {
  /// Sends a packet, or one from the pre-roll. True when a packet was taken.
  mutating func feed(_ ports: inout Ports) -> Bool {
    let isOpen = exchange.isOpen.load(ordering: .acquiring)
    if isOpen {
      if sendKept(&ports) { return true }
      if preRoll.isEmpty { postLost(&ports) }
    }
    var took = false
    if ports.hasPacket(0) && (!isOpen || hasRoom), let packet = ports.next(0) {
      if isOpen { send(packet, SocketExchange.binary, Self.soundTag) } else { keep(packet) }
      took = true
    }
    if isOpen && ports.hasPacket(1) && hasRoom, let packet = ports.next(1) {
      send(packet, SocketExchange.binary, Self.pictureTag)
      took = true
    }
    if isOpen && ports.hasPacket(2) && hasRoom, let packet = ports.next(2) {
      send(packet, SocketExchange.text, nil)
      took = true
    }
    if took && isOpen { exchange.wakeSignal.signal() }
    return took
  }

  /// True with room for the largest message. The connection wakes the node after it has sent something.
  private var hasRoom: Bool { exchange.outgoing.hasRoom(largest) }

  private func duration(of packet: borrowing Packet) -> Nanoseconds {
    // Without a sample count: 20 ms, the frame of most codecs.
    packet.duration > 0 && inputRate > 0 ? .samples(Int64(packet.duration), rate: inputRate) : 20_000_000
  }

  private mutating func keep(_ packet: consuming Packet) {
    let time = duration(of: packet)
    preRoll.push(packet.samples(of: UInt8.self), duration: time)
  }

  private mutating func sendKept(_ ports: inout Ports) -> Bool {
    guard !preRoll.isEmpty, hasRoom else { return false }
    let isTagged = isTagged
    let exchange = exchange
    _ = preRoll.pop { bytes in
      Self.put(bytes, SocketExchange.binary, isTagged ? Self.soundTag : nil, exchange)
    }
    exchange.wakeSignal.signal()
    return true
  }

  /// Reports the audio that was discarded, and discards the pre-roll.
  mutating func postLost(_ ports: inout Ports) {
    let time = Int((preRoll.lost + preRoll.duration) / 1_000_000)
    guard time > 0 else { return }
    ports.post(Event.lost.rawValue) { $0.field("ms", time) }
    preRoll.clear()
  }

  private func send(_ packet: consuming Packet, _ kind: UInt8, _ tag: UInt8?) {
    Self.put(packet.samples(of: UInt8.self), kind, isTagged ? tag : nil, exchange)
  }

  private static func put(_ bytes: Span<UInt8>, _ kind: UInt8, _ tag: UInt8?, _ exchange: SocketExchange) {
    let start = tag == nil ? 0 : 1
    unsafe exchange.outgoing.put(kind, count: bytes.count + start) { target in
      if let tag { unsafe target[0] = tag }
      for index in bytes.indices { unsafe target[start + index] = bytes[index] }
    }
  }
}
