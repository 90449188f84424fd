internal import CRtcShim
internal import Glibc

/// A UDP socket that a loop serves, for RTP without ICE.
///
/// On the thread of its loop, `init` and `close` included. Datagrams longer than 9,216 bytes are dropped, and an ICMP error of the other
/// side is as if nothing had happened: it may begin later. Does not allocate for a datagram.
@safe
package final class DatagramSocket {
  private let loop: RTCLoop
  private let deliver: (UnsafeMutableRawBufferPointer, DatagramAddress) -> Void
  private var handle: OpaquePointer?
  /// The address and port it is bound to.
  package private(set) var local: DatagramAddress

  /// Binds a socket.
  /// - Parameters:
  ///   - address: an IP address of this machine; "0.0.0.0": all of IPv4; "::": all.
  ///   - port: 0: a free one.
  ///   - receive: gets each datagram and where it comes from. The bytes may be changed in place, and are valid only during the call, within
  ///     which the socket may be closed.
  /// - Throws: when the text is no address, is none of this machine, or the port is in use.
  package init(
    address: String, port: UInt16, on loop: RTCLoop,
    receive: @escaping (UnsafeMutableRawBufferPointer, DatagramAddress) -> Void
  ) throws(RTCProblem) {
    guard let wanted = DatagramAddress(host: address, port: port) else {
      throw .value("\"\(address)\" is no IP address; write one such as \"127.0.0.1\", \"0.0.0.0\" or \"::\"")
    }
    guard let context = unsafe loop.handle else { throw .library("the loop has ended") }
    self.loop = loop
    unsafe deliver = unsafe receive
    local = wanted
    let callbacks = unsafe millrace_datagram_callbacks(
      receive: { user, bytes, count, source in
        guard let user = unsafe user else { return }
        let socket = unsafe Unmanaged<DatagramSocket>.fromOpaque(user).takeUnretainedValue()
        let datagram = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: count)
        unsafe socket.deliver(datagram, DatagramAddress(source))
      }, user: Unmanaged.passUnretained(self).toOpaque())
    var number: Int32 = 0
    guard let made = unsafe millrace_datagram_new(context, wanted.system, callbacks, &number) else {
      throw Self.problem(number, wanted)
    }
    unsafe handle = made
    local = DatagramAddress(unsafe millrace_datagram_local(made))
  }

  deinit { close() }

  private static func problem(_ number: Int32, _ address: DatagramAddress) -> RTCProblem {
    switch number {
    case EADDRINUSE:
      .value(
        "port \(address.port) of \(address.host) is in use; take another port, or 0 for a free one")
    case EADDRNOTAVAIL:
      .value("\"\(address.host)\" is no address of this machine; `ip address` lists them")
    case EACCES:
      .value("port \(address.port) may not be used by this user; take one above 1023")
    case EAFNOSUPPORT:
      .value("\(address) needs IPv6, which this machine does not have; take an address of IPv4")
    default: .system("a UDP socket on \(address)", number)
    }
  }

  /// Sends a datagram. False when it was not sent, which is as if it were lost: no room in the socket, no way to the address, closed.
  package func send(_ datagram: UnsafeRawBufferPointer, to target: DatagramAddress) -> Bool {
    guard let handle = unsafe handle, let start = datagram.baseAddress else { return false }
    let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
    return unsafe millrace_datagram_send(handle, bytes, datagram.count, target.system)
  }

  /// Closes the socket: its port is free again. A second call does nothing.
  package func close() {
    guard let open = unsafe handle else { return }
    unsafe handle = nil
    unsafe millrace_datagram_free(open)
  }
}
