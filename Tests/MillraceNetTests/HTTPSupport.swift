import Foundation
import MillraceNet
import TestSystem
import TestNet
import Testing

/// A request as text.
func request(_ path: String = "/", _ more: String = "", method: String = "GET") -> String {
  "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(more)\r\n"
}

/// The next response on a connection, with the body that its `Content-Length` announces.
func response(_ connection: RawConnection, hasBody: Bool = true) -> (head: String, body: String) {
  let head = connection.readHead()
  let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
  let length = line.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
  let body = hasBody ? connection.read(exactly: length) : []
  return (head, String(decoding: body, as: UTF8.self))
}

/// What a test does on blocking sockets happens on a thread of its own.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
  }
}

/// Waits on a thread of its own as long as something is so; throws after ten minutes, because no time limit ends a thread.
func pause(while isSo: @Sendable () -> Bool) throws {
  struct Endless: Error {}
  let end = ContinuousClock.now + .seconds(600)
  while isSo() {
    guard ContinuousClock.now < end else { throw Endless() }
    usleep(1_000)
  }
}

/// Waits until something is so. The time limit of the suite ends a wait for what never comes.
func until(_ isSo: @Sendable () -> Bool) async throws {
  while !isSo() { try await Task.sleep(for: .milliseconds(1)) }
}

/// Whether something becomes so within two minutes. For what would never come if it were broken, and does not wait for a peer.
func becomes(_ isSo: @Sendable () -> Bool) async throws -> Bool {
  let end = ContinuousClock.now + .seconds(120)
  while !isSo() {
    guard ContinuousClock.now < end else { return false }
    try await Task.sleep(for: .milliseconds(1))
  }
  return true
}

/// Returns when the network thread has certainly had its turn at every socket several times: it answered 20 requests meanwhile.
func turnLoop() async throws {
  var limits = HTTPServer.Limits()
  limits.patience = 600_000
  let server = try await HTTPServer.listen(port: 0, on: .shared, limits: limits) { _ in .answer(.text("")) }
  try await blocking { [port = server.port] in
    let connection = try RawConnection(port: port)
    for _ in 0..<20 {
      connection.send(request())
      #expect(response(connection).head.hasPrefix("HTTP/1.1 200 "))
    }
    connection.close()
  }
  await server.stop()
}

/// Bytes in which an omission, a repetition or a cut shows.
func pattern(_ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

/// Runs a program, and returns what it printed, and its exit status where that is not 0.
func output(of program: String, _ arguments: [String], input: String = "") async throws -> String {
  try await blocking {
    let folder = TemporaryFolder()
    put(Array(input.utf8), at: folder.file("input"))
    let run = try TestProgram(
      try #require(TestProgram.path(of: program), "\(program) is not installed"), arguments,
      input: .file(folder.file("input")), output: .file(folder.file("output")))
    let status = run.wait(seconds: 600)
    return String(decoding: contents(folder.file("output")), as: UTF8.self)
      + (status == 0 ? "" : "exit \(status)")
  }
}

extension HTTPClient {
  /// A new client that keeps connections for longer than a loaded machine takes between two requests.
  static var patient: HTTPClient {
    var limits = HTTPClient.Limits()
    limits.idle = 600_000
    return HTTPClient(limits: limits)
  }
}

/// A server on the network thread.
func serve(
  identity: NetIdentity? = nil, _ change: (inout HTTPServer.Limits) -> Void = { _ in },
  _ decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
) async throws -> HTTPServer {
  var limits = HTTPServer.Limits()
  limits.patience = 600_000
  change(&limits)
  return try await HTTPServer.listen(
    port: 0, identity: identity, on: .shared, limits: limits, decide: decide)
}
