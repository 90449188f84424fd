/// The payload of SessionNew: the data ids that a client sends on, and those that it receives on.
struct ChannelLists: Sendable, Hashable {
  var sends: [UInt16] = []
  var receives: [UInt16] = []

  init(sends: [UInt16], receives: [UInt16]) {
    self.sends = sends
    self.receives = receives
  }

  init(_ payload: [UInt8]) throws(WireFault) {
    var cursor = ByteCursor(payload)
    sends = try Self.list(&cursor)
    receives = try Self.list(&cursor)
    guard cursor.left == 0 else { throw WireFault(.channelLists, "bytes follow the data ids") }
  }

  private static func list(_ cursor: inout ByteCursor) throws(WireFault) -> [UInt16] {
    guard let count = cursor.int(2), count % 2 == 0, let bytes = cursor.take(count) else {
      throw WireFault(.channelLists, "the lists of data ids are not whole")
    }
    return stride(from: 0, to: count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
  }

  var payload: [UInt8] {
    var bytes: [UInt8] = []
    for list in [sends, receives] {
      bytes.append(list.count * 2, bytes: 2)
      for id in list { bytes.append(id, bytes: 2) }
    }
    return bytes
  }
}
