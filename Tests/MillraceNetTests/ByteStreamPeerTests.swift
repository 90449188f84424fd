import Foundation
import MillraceCore
import MillraceNet
import TestNet
import TestSystem
import Testing

/// A Python program beside a test, with the `ssl` and `socket` modules of its standard library, on OpenSSL.
private final class PythonPeer {
  private let folder = TemporaryFolder()
  private let program: TestProgram

  /// - Parameter arguments: `sys.argv` of the script, from 1.
  init(_ script: String, _ arguments: [String] = []) throws {
    let path = try #require(TestProgram.path(of: "python3"))
    program = try TestProgram(
      path, ["-c", script] + arguments, output: .file(folder.file("out")),
      errors: .file(folder.file("errors")))
  }

  /// The first line it prints.
  func firstLine() async throws -> String {
    while true {
      let text = String(decoding: contents(folder.file("out")), as: UTF8.self)
      if let end = text.firstIndex(of: "\n") { return String(text[..<end]) }
      try #require(program.isRunning, "\(errors)")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Waits for its end and expects exit status 0; answers what it printed.
  func output() -> String {
    let status = program.wait(seconds: 600)
    #expect(status == 0, "\(errors)")
    return String(decoding: contents(folder.file("out")), as: UTF8.self)
  }

  private var errors: String { String(decoding: contents(folder.file("errors")), as: UTF8.self) }
}

/// Accepts one TLS connection, prints its port first, sends back what it read, and ends as `sys.argv[3]` says.
private let tlsEcho = """
  import socket, ssl, sys
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(sys.argv[1], sys.argv[2])
  listener = socket.create_server(("127.0.0.1", 0))
  print(listener.getsockname()[1], flush=True)
  raw, _ = listener.accept()
  try:
      peer = context.wrap_socket(raw, server_side=True, suppress_ragged_eofs=False)
      total = b""
      while len(total) < int(sys.argv[4]):
          more = peer.recv(65536)
          if not more:
              break
          total += more
      peer.sendall(total)
      if sys.argv[3] == "alert":
          peer.unwrap().close()
      else:
          peer.shutdown(socket.SHUT_RDWR); peer.close()
      print(len(total))
  except OSError:
      print("failed")
  """

/// Connects over TLS, checks the certificate, sends bytes and a close alert, reads to the server's close alert and prints what it read.
private let tlsClient = """
  import socket, ssl, sys
  context = ssl.create_default_context(cafile=sys.argv[1])
  peer = context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[2]))),
    server_hostname="localhost", suppress_ragged_eofs=False)
  data = bytes(i * 7 % 251 for i in range(int(sys.argv[3])))
  peer.sendall(data)
  total = b""
  while len(total) < len(data):
      more = peer.recv(65536)
      if not more:
          break
      total += more
  peer.unwrap().close()
  print(total == data)
  """

@Suite(
  "byte streams beside OpenSSL and Python", .timeLimit(.minutes(30)),
  .enabled(if: TestProgram.isInstalled("python3") && TestProgram.isInstalled("openssl")))
struct ByteStreamPeerTests {
  @Test("bytes go to a server on OpenSSL and back, and its close alert is the end of its direction")
  func server() async throws {
    let size = 200_000
    let peer = try PythonPeer(
      tlsEcho, [Certificates.localhost.certificate, Certificates.localhost.key, "alert", "\(size)"])
    let port = try #require(Int(try await peer.firstLine()))
    let (stream, events) = try connectSecurely(port)
    #expect(await events.opened())
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    #expect(stream.send(bytes))
    #expect(await events.bytes(size) == bytes)
    #expect(await events.finished())
    stream.close()
    #expect(await events.end() == ByteStreamEnd())
    #expect(peer.output().hasSuffix("\(size)\n"))
  }

  @Test("a connection cut without a close alert is an error, because bytes may be missing")
  func truncated() async throws {
    let peer = try PythonPeer(
      tlsEcho, [Certificates.localhost.certificate, Certificates.localhost.key, "cut", "10"])
    let port = try #require(Int(try await peer.firstLine()))
    let (stream, events) = try connectSecurely(port)
    #expect(await events.opened())
    #expect(stream.send(.init(repeating: 5, count: 10)))
    #expect(await events.bytes(10).count == 10)
    let problem = await events.end().problem
    #expect(
      problem
        == NetError(
          .lost,
          "localhost:\(port) closed the connection without a TLS close alert: bytes may be missing at the end"
        ))
    _ = peer.output()
  }

  @Test("not one byte goes to a server whose certificate is not that of the host")
  func nothingToStrangers() async throws {
    let peer = try PythonPeer(
      tlsEcho, [Certificates.other.certificate, Certificates.other.key, "alert", "1"])
    let port = try #require(Int(try await peer.firstLine()))
    // The client writes its request before TLS is there; it waits in the pipeline.
    var request = HTTPClient.Request("POST", try WebAddress("https://localhost:\(port)/secret"))
    request.body = .bytes(Array("secret".utf8))
    request.trust = .file(Certificates.authority)
    request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
    await #expect { _ = try await HTTPClient.shared.run(request) } throws: {
      "\($0)".hasPrefix("host name mismatch")
    }
    let last = peer.output().split(separator: "\n").last
    #expect(last == "failed" || last == "0")
  }

  @Test(
    "a client on OpenSSL accepts the server's certificate, its bytes come back, and its close alert is answered"
  )
  func client() async throws {
    let server = try await echoStream(identity: Certificates.localhost)
    let peer = try PythonPeer(tlsClient, [Certificates.authority, "\(server.port)", "300000"])
    #expect(peer.output() == "True\n")
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test("the program openssl verifies a server's certificate, and is sent its own bytes")
  func program() async throws {
    let server = try await ByteStreamServer.listen(
      port: 0, identity: Certificates.localhost, limits: .patient
    ) { _ in
      .accept { stream in
        { event in
          guard case .bytes(let bytes) = event else { return }
          _ = stream.send(bytes.reversed())
          if bytes.last == 10 { stream.close() }
        }
      }
    }
    let folder = TemporaryFolder()
    put(Array("stressed\n".utf8), at: folder.file("in"))
    let client = try TestProgram(
      try #require(TestProgram.path(of: "openssl")),
      [
        "s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile", Certificates.authority, "-quiet",
        "-verify_return_error", "-verify_hostname", "localhost", "-servername", "localhost",
      ], input: .file(folder.file("in")), output: .file(folder.file("out")),
      errors: .file(folder.file("errors")))
    client.wait(seconds: 600)
    #expect(contents(folder.file("out")) == Array("\ndesserts".utf8), "\(contents(folder.file("errors")))")
    server.stop()
  }
}
