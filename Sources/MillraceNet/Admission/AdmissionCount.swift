/// Counts the half-open and the open connections of a server. A pure value.
struct AdmissionCount {
  /// The part of a peer's address by which connections are counted together.
  typealias Address = [UInt8]

  private let admission: ServerAdmission
  private var halfOpenFrom: [Address: Int] = [:]
  private var arrivingFrom: [Address: Int] = [:]
  private(set) var halfOpen = 0
  private(set) var connections = 0

  init(_ admission: ServerAdmission) { self.admission = admission }

  /// The counted part of a numeric address; empty when the text is not one.
  static func address(_ digits: String?) -> Address {
    guard let digits, let bytes = AddressDigits.bytes(of: digits) else { return [] }
    guard bytes.count == 16 else { return bytes }
    // An IPv4-mapped address, RFC 4291 section 2.5.5.2.
    let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
    return Array(isMapped ? bytes[12...] : bytes[..<8])
  }

  /// A TCP connection was accepted; it is half-open until its first request is admitted.
  mutating func arrive(from address: Address) -> ServerAdmission.Refusal? {
    guard halfOpen < admission.halfOpen, halfOpenFrom[address, default: 0] < admission.halfOpenPerAddress
    else {
      return ServerAdmission.Refusal(
        kind: .halfOpen, status: 503, text: "too many pending handshakes; try again later")
    }
    halfOpen += 1
    halfOpenFrom[address, default: 0] += 1
    return nil
  }

  /// Why no further connection may open, or nil when one may.
  var refusal: ServerAdmission.Refusal? {
    connections < admission.connections
      ? nil
      : ServerAdmission.Refusal(kind: .full, status: 503, text: "too many connections; try again later")
  }

  /// A half-open connection opens.
  mutating func open(from address: Address) {
    closeHalfOpen(address)
    connections += 1
  }

  /// The body of an admitted request does not come in one read with its head. Counted apart from half-open connections, so that slow
  /// bodies keep no other request of their address away.
  mutating func awaitBody(from address: Address) -> ServerAdmission.Refusal? {
    guard arrivingFrom[address, default: 0] < admission.halfOpenPerAddress else {
      return ServerAdmission.Refusal(
        kind: .halfOpen, status: 503,
        text: "too many requests from this address are incomplete; try again later")
    }
    arrivingFrom[address, default: 0] += 1
    return nil
  }

  /// A body that was waited for has come, or is not waited for any more.
  mutating func endBody(from address: Address) {
    let left = arrivingFrom[address, default: 1] - 1
    arrivingFrom[address] = left > 0 ? left : nil
  }

  /// A connection was closed by either side.
  mutating func close(from address: Address, wasOpen: Bool) {
    if wasOpen { connections -= 1 } else { closeHalfOpen(address) }
  }

  private mutating func closeHalfOpen(_ address: Address) {
    halfOpen -= 1
    let left = halfOpenFrom[address, default: 1] - 1
    // Addresses without connections are not kept.
    halfOpenFrom[address] = left > 0 ? left : nil
  }
}
