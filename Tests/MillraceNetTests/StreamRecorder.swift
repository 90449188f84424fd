import MillraceCore
import MillraceNet
import TestNet

typealias StreamRecorder = Recorder<ByteStreamEvent>

extension Recorder<ByteStreamEvent> {
  /// True when the next event is the opening.
  func opened() async -> Bool {
    if case .opened = await next() { true } else { false }
  }

  /// True when the next event is the peer's end.
  func finished() async -> Bool {
    if case .finished = await next() { true } else { false }
  }

  /// Skips to the end and returns it.
  func end() async -> ByteStreamEnd {
    while true { if case .closed(let end) = await next() { return end } }
  }

  /// Collects bytes until there are as many; fewer when another event comes between.
  func bytes(_ count: Int) async -> [UInt8] {
    var result: [UInt8] = []
    while result.count < count, case .bytes(let more) = await next() { result += more }
    return result
  }

  /// Bytes that have arrived, read or not.
  var received: Int {
    all.reduce(0) { sum, event in
      if case .bytes(let more) = event { sum + more.count } else { sum }
    }
  }
}

extension ByteStreamLimits {
  /// Ten minutes to open and to close: a machine that runs all tests at once may take longer than a user would wait.
  static var patient: ByteStreamLimits {
    var limits = ByteStreamLimits()
    limits.open = 600_000
    limits.close = 600_000
    return limits
  }
}

/// Waits until the loop has done what it was given before.
func passed(_ loop: NetLoop) async {
  await withCheckedContinuation { continuation in loop.run { continuation.resume() } }
}

/// Opens a byte stream to a loopback port, with patience.
func connect(
  _ port: Int, scheme: String = "tcp", host: String = "127.0.0.1",
  _ change: (inout ByteStreamRequest) -> Void = { _ in }
) throws -> (stream: ByteStream, events: StreamRecorder) {
  var request = ByteStreamRequest(try WebAddress("\(scheme)://\(host):\(port)"))
  request.limits = .patient
  change(&request)
  let events = StreamRecorder()
  return (ByteStream.open(request, events: events.receive), events)
}

/// Opens a byte stream to a loopback port that is paused before the first byte can arrive: `open` only queues the connecting, and the loop pauses
/// it in the same turn.
func connectPaused(
  _ port: Int, _ change: (inout ByteStreamRequest) -> Void = { _ in }
) async throws -> (stream: ByteStream, events: StreamRecorder) {
  var made = ByteStreamRequest(try WebAddress("tcp://127.0.0.1:\(port)"))
  made.limits = .patient
  change(&made)
  let (request, events) = (made, StreamRecorder())
  let stream = await withCheckedContinuation { continuation in
    NetLoop.shared.run {
      let stream = ByteStream.open(request, events: events.receive)
      stream.pause()
      continuation.resume(returning: stream)
    }
  }
  return (stream, events)
}

/// Opens a byte stream over TLS to a server with the test certificate for `localhost`.
func connectSecurely(
  _ port: Int, _ change: (inout ByteStreamRequest) -> Void = { _ in }
) throws -> (stream: ByteStream, events: StreamRecorder) {
  try connect(port, scheme: "tls", host: "localhost") {
    $0.trust = .file(Certificates.authority)
    change(&$0)
  }
}

/// A server that sends every byte back, and ends its direction when the client does.
func echoStream(
  identity: NetIdentity? = nil, admission: ByteStreamAdmission = ByteStreamAdmission()
) async throws -> ByteStreamServer {
  var limits = ByteStreamLimits.patient
  limits.backlog = 64 << 20
  return try await ByteStreamServer.listen(
    port: 0, identity: identity, limits: limits, admission: admission
  ) { _ in
    .accept { stream in
      { event in
        switch event {
        case .bytes(let bytes): _ = stream.send(bytes)
        case .finished: stream.finish()
        default: break
        }
      }
    }
  }
}
