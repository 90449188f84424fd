import MillraceCore
import Testing

@testable import MillraceRTC

@Suite("addresses of datagrams")
struct DatagramAddressTests {
  @Test(
    "literal addresses are read and written",
    arguments: [
      ("127.0.0.1", "127.0.0.1:5004", false), ("255.255.255.255", "255.255.255.255:5004", false),
      ("::1", "[::1]:5004", true), ("2001:DB8:0::5", "[2001:db8::5]:5004", true), ("::", "[::]:5004", true),
      ("fe80::1%lo", "[fe80::1%lo]:5004", true),
    ])
  func reads(text: String, description: String, isIPv6: Bool) throws {
    let address = try #require(DatagramAddress(host: text, port: 5_004))
    #expect(address.description == description && address.isIPv6 == isIPv6)
    #expect(DatagramAddress(host: address.host, port: 5_004) == address)
  }

  @Test(
    "anything else is no address",
    arguments: [
      "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4:5", "[::1]", ":::", "::1%", "::1%nothere0",
      " 1.2.3.4",
      "1.2.3.4\0", "12345678901234567890123456789012345678901234567890",
    ])
  func refuses(text: String) {
    #expect(DatagramAddress(host: text, port: 1) == nil)
  }
}

@Suite("UDP sockets on a loop", .timeLimit(.minutes(2)))
struct DatagramSocketTests {
  /// A socket and what came to it. On the loop's thread, but for `received`.
  final class Place: @unchecked Sendable {
    struct Datagram: Sendable {
      var bytes: [UInt8]
      var source: DatagramAddress
    }

    let received = Locked<[Datagram]>([])
    let problem = Locked<RTCProblem?>(nil)
    let local = Locked<DatagramAddress?>(nil)
    var socket: DatagramSocket?
    var echoes = false
    var closesOnFirst = false

    func open(_ address: String, _ port: UInt16 = 0, on loop: RTCLoop) {
      do throws(RTCProblem) {
        socket = try DatagramSocket(address: address, port: port, on: loop) { [unowned self] bytes, source in
          take(bytes, source)
        }
        local.withLock { $0 = socket?.local }
      } catch {
        problem.withLock { $0 = error }
      }
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer, _ source: DatagramAddress) {
      let datagram = Datagram(bytes: Array(bytes), source: source)
      received.withLock { $0.append(datagram) }
      if echoes { _ = socket?.send(UnsafeRawBufferPointer(bytes), to: source) }
      if closesOnFirst { socket?.close() }
    }

    func send(_ bytes: [UInt8], to target: DatagramAddress?) -> Bool {
      guard let target else { return false }
      return bytes.withUnsafeBytes { socket?.send($0, to: target) ?? false }
    }
  }

  private func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(2)) }
  }

  private func open(_ address: String, _ port: UInt16 = 0, on loop: RTCLoop) async throws -> Place {
    let place = Place()
    loop.perform { place.open(address, port, on: loop) }
    try await until { place.local.withLock { $0 } != nil || place.problem.withLock { $0 } != nil }
    return place
  }

  @Test("datagrams go both ways, with the address they come from", arguments: ["127.0.0.1", "::1"])
  func bothWays(host: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = (try await open(host, on: loop), try await open(host, on: loop))
    loop.perform {
      b.echoes = true
      _ = a.send([1, 2, 3], to: b.socket?.local)
    }
    try await until { a.received.withLock { $0.count } == 1 }
    let back = try #require(a.received.withLock { $0.first })
    #expect(back.bytes == [1, 2, 3] && back.source == b.local.withLock { $0 })
    #expect(b.received.withLock { $0.first?.source } == a.local.withLock { $0 })
    #expect(a.local.withLock { $0?.port } != 0)
  }

  @Test("a socket on all addresses hears IPv4 with its own kind of address, and answers")
  func dualStack() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = (try await open("127.0.0.1", on: loop), try await open("::", on: loop))
    let port = try #require(b.local.withLock { $0?.port })
    loop.perform {
      b.echoes = true
      _ = a.send([7], to: DatagramAddress(host: "127.0.0.1", port: port))
    }
    try await until { a.received.withLock { $0.count } == 1 }
    #expect(b.received.withLock { $0.first?.source } == a.local.withLock { $0 })
  }

  @Test("a burst of datagrams arrives in order, of every size up to a jumbo frame; a larger one is dropped")
  func burst() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = (try await open("127.0.0.1", on: loop), try await open("127.0.0.1", on: loop))
    let sizes = (0..<40).map { 1 + $0 * 30 } + [9_216, 9_217, 1]
    loop.perform {
      for size in sizes { _ = a.send([UInt8](repeating: 5, count: size), to: b.socket?.local) }
    }
    try await until { b.received.withLock { $0.count } == sizes.count - 1 }
    #expect(b.received.withLock { $0.map(\.bytes.count) } == sizes.filter { $0 != 9_217 })
  }

  @Test("a port in use is refused with a message, and is free again after the socket was closed")
  func portInUse() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let first = try await open("127.0.0.1", on: loop)
    let port = try #require(first.local.withLock { $0?.port })
    let second = try await open("127.0.0.1", port, on: loop)
    #expect(
      second.problem.withLock { $0 }?.description
        == "port \(port) of 127.0.0.1 is in use; take another port, or 0 for a free one")
    loop.perform {
      first.socket?.close()
      first.socket?.close()
    }
    let third = try await open("127.0.0.1", port, on: loop)
    #expect(third.problem.withLock { $0 } == nil)
  }

  @Test(
    "what is no address, or none of this machine, is refused with a message",
    arguments: [
      ("192.0.2.77", "\"192.0.2.77\" is no address of this machine; `ip address` lists them"),
      ("localhost", "\"localhost\" is no IP address; write one such as \"127.0.0.1\", \"0.0.0.0\" or \"::\""),
    ])
  func refuses(address: String, text: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let place = try await open(address, on: loop)
    #expect(place.problem.withLock { $0 }?.description == text)
  }

  @Test("a socket may be closed while it hands a datagram over; nothing follows, and nothing is sent")
  func closesWithin() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = (try await open("127.0.0.1", on: loop), try await open("127.0.0.1", on: loop))
    let isSent = Locked<Bool?>(nil)
    loop.perform {
      b.closesOnFirst = true
      for number in 0..<10 { _ = a.send([UInt8(number)], to: b.socket?.local) }
    }
    try await until { b.received.withLock { !$0.isEmpty } }
    loop.perform {
      let sent = b.send([1], to: a.socket?.local)
      isSent.withLock { $0 = sent }
    }
    try await until { isSent.withLock { $0 } != nil }
    #expect(b.received.withLock { $0.count } == 1 && isSent.withLock { $0 } == false)
  }

  @Test("a datagram from a socket of IPv4 to an address of IPv6 is not sent")
  func otherFamily() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let place = try await open("127.0.0.1", on: loop)
    let isSent = Locked<Bool?>(nil)
    loop.perform {
      let sent = place.send([1], to: DatagramAddress(host: "::1", port: 9))
      isSent.withLock { $0 = sent }
    }
    try await until { isSent.withLock { $0 } != nil }
    #expect(isSent.withLock { $0 } == false)
  }
}
