internal import CRtcShim
package import MillraceRTCWire

/// How an end of ICE behaves.
public struct ICESettings: Sendable, Hashable {
  /// A TURN server (RFC 8656).
  public struct Relay: Sendable, Hashable {
    /// How the server is reached.
    public enum Kind: Sendable, Hashable {
      /// By UDP.
      case udp
      /// By TCP, where a firewall drops UDP.
      case tcp
    }
    /// An IP address: names are resolved before.
    public var address: String
    /// Its port.
    public var port: UInt16
    /// The user.
    public var user: String
    /// The password.
    public var password: String
    /// How it is reached.
    public var kind: Kind

    /// Creates a server.
    public init(address: String, port: UInt16, user: String, password: String, kind: Kind = .udp) {
      self.address = address
      self.port = port
      self.user = user
      self.password = password
      self.kind = kind
    }
  }

  /// Only answers checks (RFC 8445 section 2.5): for servers with an address that everybody reaches.
  public var isLite = false
  /// Sends through a relay only, so that the peer does not learn this machine's addresses.
  public var isRelayOnly = false
  /// Asks the peer for consent again and again (RFC 7675), and notices its loss.
  public var hasConsent = true
  /// Addresses of this machine to use; empty: all but loopback.
  public var addresses: [String] = []
  /// Ports to use; nil: any.
  public var ports: ClosedRange<UInt16>?
  /// A STUN server: an IP address and a port.
  public var stun: (address: String, port: UInt16)? {
    get { stunAddress.map { ($0, stunPort) } }
    set { (stunAddress, stunPort) = (newValue?.address, newValue?.port ?? 3_478) }
  }
  /// TURN servers.
  public var relays: [Relay] = []
  private var stunAddress: String?
  private var stunPort: UInt16 = 3_478

  /// Creates settings for a machine with an address of its own.
  public init() {}
}

/// The state of ICE.
package enum ICEState: Sendable, Equatable {
  case idle, checking
  /// Datagrams pass; checks for a better pair may follow.
  case connected
  /// Nothing passes, and all checks have failed, or consent was lost.
  case failed
}

/// What an `ICETransport` reports, on the thread of its loop.
package protocol ICEObserver: AnyObject {
  /// A candidate of this side: "candidate:…".
  func iceFound(_ candidate: String)
  /// All candidates of this side were found.
  func iceGathered()
  func iceChanged(_ state: ICEState)
  /// A datagram that is not ICE's own; it may be changed in place, and is valid only during the call.
  func iceReceived(_ datagram: UnsafeMutableRawBufferPointer)
}

/// Carries datagrams between two peers that may be behind NATs (RFC 8445), over one component. On the thread of its loop.
package protocol ICETransport: AnyObject {
  var observer: (any ICEObserver)? { get set }
  /// The credentials of this side; others after `restart`.
  var credentials: ICECredentials { get throws(RTCProblem) }
  /// Begins to search candidates.
  func gather() throws(RTCProblem)
  func setRemote(_ credentials: ICECredentials) throws(RTCProblem)
  /// Adds a candidate of the peer. False for one that cannot be used, which is no error: others may be.
  func add(_ candidate: String) -> Bool
  /// No more candidates of the peer follow.
  func endCandidates()
  /// Begins again with new credentials of this side; the present pair is used until another works.
  func restart() throws(RTCProblem)
  /// Sends a datagram. False when it was not sent, which is as if it were lost.
  func send(_ datagram: UnsafeRawBufferPointer) -> Bool
  /// Asks the peer for checks, at each of its addresses, while there is no pair: the checks of ICE itself become rare when they are lost.
  /// False when nothing was sent.
  func check() -> Bool
  /// The pair in use, each as "candidate:…".
  var selectedPair: (local: String, remote: String)? { get }
  /// Asks the peer for a sign of life over the pair in use. False when nothing was sent.
  func probe() -> Bool
  /// True when anything came over the pair in use since the last call, also what belongs to ICE and is not reported. A transport that
  /// cannot tell says false.
  func heard() -> Bool
  /// Ends. Nothing is reported from here on. Not within a call of the observer.
  func close()
}

/// `ICETransport` by libnice.
@safe
package final class NiceTransport: ICETransport {
  /// Room for a candidate or a password with its 0.
  private static let room = 512

  private var handle: OpaquePointer?
  package weak var observer: (any ICEObserver)?

  /// Creates an agent on a loop's thread.
  package init(_ settings: ICESettings, isControlling: Bool, on loop: RTCLoop) throws(RTCProblem) {
    guard let context = unsafe loop.handle else { throw .library("the loop has ended") }
    let options = millrace_ice_options(
      is_controlling: isControlling, is_lite: settings.isLite, is_relay_only: settings.isRelayOnly,
      has_consent: settings.hasConsent)
    guard let made = unsafe millrace_ice_new(context, options, callbacks()) else {
      throw .library("libnice could not make an agent")
    }
    unsafe handle = made
    try configure(settings)
  }

  deinit { close() }

  private func callbacks() -> millrace_ice_callbacks {
    unsafe millrace_ice_callbacks(
      candidate: { user, text in
        guard let observer = unsafe NiceTransport.observer(user) else { return }
        observer.iceFound(unsafe String(cString: text))
      },
      gathered: { user in unsafe NiceTransport.observer(user)?.iceGathered() },
      changed: { user, state in unsafe NiceTransport.observer(user)?.iceChanged(ICEState(state)) },
      receive: { user, bytes, count in
        guard let observer = unsafe NiceTransport.observer(user) else { return }
        unsafe observer.iceReceived(UnsafeMutableRawBufferPointer(start: bytes, count: count))
      }, user: Unmanaged.passUnretained(self).toOpaque())
  }

  private static func observer(_ user: UnsafeMutableRawPointer?) -> (any ICEObserver)? {
    guard let user = unsafe user else { return nil }
    return unsafe Unmanaged<NiceTransport>.fromOpaque(user).takeUnretainedValue().observer
  }

  private func configure(_ settings: ICESettings) throws(RTCProblem) {
    let handle = unsafe try live()
    for address in settings.addresses where !(unsafe millrace_ice_add_address(handle, address)) {
      throw .value("\"\(address)\" is no address of this machine; `ip address` lists them")
    }
    if let ports = settings.ports {
      unsafe millrace_ice_set_ports(handle, ports.lowerBound, ports.upperBound)
    }
    if let stun = settings.stun { unsafe millrace_ice_set_stun(handle, stun.address, stun.port) }
    for relay in settings.relays {
      let kind = relay.kind == .tcp ? millrace_ice_turn_tcp : millrace_ice_turn_udp
      guard
        unsafe millrace_ice_add_turn(handle, relay.address, relay.port, relay.user, relay.password, kind)
      else { throw .value("\"\(relay.address)\" is no IP address of a TURN server") }
    }
  }

  private func live() throws(RTCProblem) -> OpaquePointer {
    guard let handle = unsafe handle else { throw .library("the agent has ended") }
    return unsafe handle
  }

  package var credentials: ICECredentials {
    get throws(RTCProblem) {
      let handle = unsafe try live()
      let parts = unsafe Self.texts { first, second, room in
        unsafe millrace_ice_local_credentials(handle, first, second, room)
      }
      guard let (fragment, password) = parts else { throw .library("libnice has no credentials") }
      return ICECredentials(fragment: fragment, password: password)
    }
  }

  package func gather() throws(RTCProblem) {
    guard unsafe millrace_ice_gather(try live()) else {
      throw .noAddress("no address of this machine can be offered; name one in \"interfaces\"")
    }
  }

  package func setRemote(_ credentials: ICECredentials) throws(RTCProblem) {
    guard unsafe millrace_ice_set_remote_credentials(try live(), credentials.fragment, credentials.password)
    else { throw .library("libnice refuses the credentials of the peer") }
  }

  package func add(_ candidate: String) -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe millrace_ice_add_candidate(handle, candidate)
  }

  package func endCandidates() {
    if let handle = unsafe handle { unsafe millrace_ice_end_candidates(handle) }
  }

  package func restart() throws(RTCProblem) {
    guard unsafe millrace_ice_restart(try live()) else { throw .library("libnice could not restart ICE") }
  }

  package func send(_ datagram: UnsafeRawBufferPointer) -> Bool {
    guard let handle = unsafe handle, let start = datagram.baseAddress else { return false }
    return unsafe millrace_ice_send(handle, start.assumingMemoryBound(to: UInt8.self), datagram.count)
  }

  package var selectedPair: (local: String, remote: String)? {
    guard let handle = unsafe handle else { return nil }
    return unsafe Self.texts { first, second, room in
      unsafe millrace_ice_selected_pair(handle, first, second, room)
    }.map { ($0, $1) }
  }

  package func check() -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe millrace_ice_check(handle)
  }

  package func probe() -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe millrace_ice_probe(handle)
  }

  package func heard() -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe millrace_ice_heard(handle)
  }

  package func close() {
    guard let open = unsafe handle else { return }
    unsafe handle = nil
    unsafe millrace_ice_free(open)
  }

  /// Two texts that a function of C writes.
  private static func texts(
    _ write: (UnsafeMutablePointer<CChar>, UnsafeMutablePointer<CChar>, Int) -> Bool
  ) -> (String, String)? {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 2 * room) { memory -> (String, String)? in
      guard let start = memory.baseAddress else { return nil }
      unsafe memory.initialize(repeating: 0)
      guard unsafe write(start, start + room, room) else { return nil }
      return unsafe (String(cString: start), String(cString: start + room))
    }
  }
}

extension ICEState {
  fileprivate init(_ state: millrace_ice_state) {
    switch state {
    case millrace_ice_idle: self = .idle
    case millrace_ice_checking: self = .checking
    case millrace_ice_failed: self = .failed
    default: self = .connected
    }
  }
}
