import Glibc
import NIOCore
import TestNet
import Testing

@testable import MillraceNet

/// A connection of this machine's address 127.0.0.9.
private func connectFromElsewhere(port: Int) throws -> RawConnection {
  struct Failed: Error {}
  func address(_ digits: UInt32, _ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = digits.bigEndian
    address.sin_port = in_port_t(port).bigEndian
    return address
  }
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  var (own, server) = (address(0x7F00_0009, 0), address(0x7F00_0001, port))
  let size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let bound = withUnsafePointer(to: &own) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
  }
  let connected = withUnsafePointer(to: &server) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
  }
  guard bound == 0, connected == 0 else { throw Failed() }
  return RawConnection(descriptor)
}

@Suite("HTTP clients that ask for nothing", .timeLimit(.minutes(30))) struct HTTPSilenceTests {
  /// Room for 24 connections, any number of them half-open, for as long as a test takes.
  private static func listen() async throws -> HTTPServer {
    var (limits, admission) = (HTTPServer.Limits(), ServerAdmission())
    limits.connections = 24
    limits.patience = 3_600_000
    limits.crowdedPatience = 10
    admission.halfOpen = 1_024
    admission.halfOpenPerAddress = 1_024
    return try await HTTPServer.listen(port: 0, on: .shared, limits: limits, admission: admission) { _ in
      .answer(.text("here"))
    }
  }

  @Test(
    "many of one address, renewed all the time, keep no other address away",
    arguments: ["", "GET / HTTP/1.1\r\nHost: local"])
  func renewed(beginning: String) async throws {
    let server = try await Self.listen()
    try await blocking { [port = server.port] in
      // Of another address, and few: it keeps its time.
      let patient = try RawConnection(port: port)
      var held: [RawConnection] = []
      for round in 0..<6 {
        for _ in 0..<40 {
          let silent = try connectFromElsewhere(port: port)
          silent.send(beginning)
          held.append(silent)
        }
        let client = try RawConnection(port: port)
        client.send(request())
        try #require(response(client).body == "here", "round \(round)")
        client.close()
        // Half of them make room for others of their kind.
        for connection in held.prefix(20) { connection.close() }
        held.removeFirst(20)
      }
      // With bytes unread, the system may discard the answer.
      if beginning.isEmpty { #expect(held[0].readHead().hasPrefix("HTTP/1.1 503 ")) }
      #expect(held[0].isClosed())
      patient.send(request())
      #expect(response(patient).body == "here")
      for connection in held + [patient] { connection.close() }
    }
    await server.stop()
  }

  private static let one: HTTPServerSilence.Address = [127, 0, 0, 9]
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

  private static var silence: HTTPServerSilence {
    var limits = HTTPServer.Limits()
    limits.connections = 32
    return HTTPServerSilence(limits, at: start)
  }

  private static func silent(
    _ address: HTTPServerSilence.Address, _ count: Int, since: NIODeadline
  ) -> [(address: HTTPServerSilence.Address, since: NIODeadline)] {
    (0..<count).map { _ in (address: address, since: since) }
  }

  /// The numbers of connections that go, of ten that each came a millisecond after the one before.
  private static func surplus(
    _ silence: HTTPServerSilence, of address: HTTPServerSilence.Address, at now: NIODeadline
  ) -> [Int] {
    let silent = (0..<10).map { number in
      (address: address, since: start + .milliseconds(Int64(number)), id: number)
    }
    return silence.surplus(silent.reversed(), at: now)
  }

  @Test("an address is caught that holds more than a share for too long, and forgotten later")
  func caught() {
    var silence = Self.silence
    #expect(silence.share == 8)
    let late = Self.start + .milliseconds(1_000)
    // Too many but not long enough, and long but not too many.
    silence.check(Self.silent(Self.one, 9, since: Self.start), at: late - .milliseconds(1))
    silence.check(Self.silent(Self.one, 8, since: Self.start), at: late)
    #expect(!silence.hasCaught)
    silence.check(Self.silent(Self.one, 9, since: Self.start), at: late)
    #expect(Self.surplus(silence, of: Self.one, at: late) == [0, 1])
    #expect(Self.surplus(silence, of: [127, 0, 0, 1], at: late) == [])
    let end = late + .milliseconds(10_000)
    #expect(Self.surplus(silence, of: Self.one, at: end) == [])
    silence.drop(Self.one, at: end)
    #expect(Self.surplus(silence, of: Self.one, at: end) == [0, 1])
    silence.check([], at: end + .milliseconds(10_000))
    #expect(!silence.hasCaught)
  }

  @Test("connections that are closed and renewed just in time count too, but not for ever")
  func left() {
    var silence = Self.silence
    for _ in 0..<5 { silence.leave(Self.one) }
    silence.check([], at: Self.start + .milliseconds(1_000))
    for _ in 0..<5 { silence.leave(Self.one) }
    silence.check([], at: Self.start + .milliseconds(1_250))
    #expect(!silence.hasCaught)
    for _ in 0..<4 { silence.leave(Self.one) }
    silence.check([], at: Self.start + .milliseconds(1_500))
    #expect(silence.hasCaught)
  }

  @Test("a small server leaves each address as many connections as a browser opens")
  func small() {
    var limits = HTTPServer.Limits()
    limits.connections = 2
    let silence = HTTPServerSilence(limits, at: Self.start)
    #expect(silence.share == 6)
  }
}
