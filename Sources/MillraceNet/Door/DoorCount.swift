/// How many visitors of a server are half-open, and how many are in. A pure value.
struct DoorCount {
  /// Where somebody comes from, as far as they are counted together.
  typealias Address = [UInt8]

  private let door: WebSocketDoor
  private var halfOpenFrom: [Address: Int] = [:]
  private(set) var halfOpen = 0
  private(set) var visitors = 0

  init(_ door: WebSocketDoor) { self.door = door }

  /// The part of an address in digits by which visitors are counted together; empty for what is no address.
  static func address(_ digits: String?) -> Address {
    guard let digits, let bytes = AddressDigits.bytes(of: digits) else { return [] }
    guard bytes.count == 16 else { return bytes }
    // An IPv4-mapped address, RFC 4291 section 2.5.5.2.
    let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
    return Array(isMapped ? bytes[12...] : bytes[..<8])
  }

  /// Somebody connects; they are half-open when nothing is answered.
  mutating func arrive(from address: Address) -> WebSocketDoor.Refusal? {
    guard halfOpen < door.halfOpen, halfOpenFrom[address, default: 0] < door.halfOpenPerAddress else {
      return WebSocketDoor.Refusal(
        kind: .halfOpen, status: 503, text: "too many connections wait for their handshake; try again later")
    }
    halfOpen += 1
    halfOpenFrom[address, default: 0] += 1
    return nil
  }

  /// What keeps one more from coming in; nil: nothing.
  var refusal: WebSocketDoor.Refusal? {
    visitors < door.visitors
      ? nil : WebSocketDoor.Refusal(kind: .full, status: 503, text: "the server is full; try again later")
  }

  /// Somebody half-open comes in.
  mutating func enter(from address: Address) {
    noteGone(address)
    visitors += 1
  }

  /// Somebody hangs up, or is hung up on.
  mutating func leave(from address: Address, wasIn: Bool) {
    if wasIn { visitors -= 1 } else { noteGone(address) }
  }

  private mutating func noteGone(_ address: Address) {
    halfOpen -= 1
    let left = halfOpenFrom[address, default: 1] - 1
    // Addresses of those who have gone are not kept.
    halfOpenFrom[address] = left > 0 ? left : nil
  }
}
