internal import NIOCore

/// The client of one connection, as the admission rules count it. On the event loop.
final class AdmittedPeer {
  private enum Count {
    /// Not counted: before it arrives, when it was refused then, and after it has closed.
    case none
    case halfOpen
    case open
  }

  private let control: AdmissionControl
  private let address: AdmissionCount.Address
  private var count = Count.none
  private var awaitsBody = false
  /// Its address, for messages.
  let name: String
  let isLoopback: Bool

  init(_ control: AdmissionControl, _ channel: any Channel) {
    self.control = control
    address = AdmissionCount.address(channel.remoteAddress?.ipAddress)
    name = Self.name(of: channel)
    isLoopback = channel.remoteAddress?.ipAddress.map(WebAddress.isLoopback) ?? false
  }

  /// The address of a channel's peer for messages: `127.0.0.1:46146`, `[::1]:46146`.
  static func name(of channel: any Channel) -> String {
    guard let address = channel.remoteAddress else { return "unknown address" }
    guard let digits = address.ipAddress, let port = address.port else { return address.description }
    return digits.contains(":") ? "[\(digits)]:\(port)" : "\(digits):\(port)"
  }

  /// TCP has accepted it. Returns why it is refused, or nil when it may send a request.
  func arrive() -> ServerAdmission.Refusal? {
    let refusal = control.arrive(from: address)
    if refusal == nil { count = .halfOpen }
    return refusal
  }

  /// Why its request is refused, or nil. The first request that is admitted opens the connection.
  func admit(_ request: ServerAdmission.Request) -> ServerAdmission.Refusal? {
    if let refusal = control.refusal(of: request) { return refusal }
    guard case .halfOpen = count else { return nil }
    if let refusal = control.open(from: address) { return refusal }
    count = .open
    return nil
  }

  /// The body of an admitted request is to come. Returns why the request is refused, or nil.
  func awaitBody() -> ServerAdmission.Refusal? {
    guard !awaitsBody else { return nil }
    let refusal = control.awaitBody(from: address)
    awaitsBody = refusal == nil
    return refusal
  }

  /// The body has come, or is not waited for any more.
  func endBody() {
    if awaitsBody { control.endBody(from: address) }
    awaitsBody = false
  }

  func close() {
    endBody()
    switch count {
    case .none: return
    case .halfOpen: control.close(from: address, wasOpen: false)
    case .open: control.close(from: address, wasOpen: true)
    }
    count = .none
  }

  func note(_ refusal: ServerAdmission.Refusal) { control.note(refusal, from: name) }
}
