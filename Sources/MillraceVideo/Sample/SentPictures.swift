internal import MillraceCore

/// Keeps a share of the pictures sent last, and so sees which of them somebody still holds.
struct SentPictures: ~Copyable {
  private var first: Packet?
  private var second: Packet?

  init() {}

  /// Pictures on their way or in somebody's hands, of the two sent last. Those nobody holds any more are given back.
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

  /// Notes a picture that is about to be sent. Traps when two are held: ask `held` first.
  mutating func note(_ packet: borrowing Packet) {
    if first == nil {
      first = packet.share()
    } else {
      precondition(second == nil, "two pictures are on their way")
      second = packet.share()
    }
  }
}
