internal import MillraceCore

/// Holds references to the last pictures sent, to detect whether they are still in use.
struct InFlightPictures: ~Copyable {
  private var first: Packet?
  private var second: Packet?

  init() {}

  /// How many of the last two pictures are still in use. Others are released.
  mutating func held() -> Int {
    var count = 0
    if let packet = first.take(), !packet.block.isUnique {
      first = consume packet
      count += 1
    }
    if let packet = second.take(), !packet.block.isUnique {
      second = consume packet
      count += 1
    }
    return count
  }

  /// Records a picture about to be sent. Precondition: fewer than two are in use; call `held` first.
  mutating func note(_ packet: borrowing Packet) {
    if first == nil {
      first = packet.share()
    } else {
      precondition(second == nil, "two pictures are in use")
      second = packet.share()
    }
  }
}
