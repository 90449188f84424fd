import NIOCore
import NIOEmbedded
import NIOSSL
import TestNet
import Testing

@testable import MillraceNet

/// A byte stream over TLS and its peer, without a network and with a clock that stands still: what happens does not wait for a timer.
private final class SecurePair {
  private let loop: EmbeddedEventLoop
  let client: EmbeddedChannel
  let server: EmbeddedChannel
  let stream: ByteStreamHandler
  let events: StreamRecorder

  /// Completes the handshake.
  init() throws {
    let (loop, events) = (EmbeddedEventLoop(), StreamRecorder())
    (self.loop, self.events) = (loop, events)
    client = EmbeddedChannel(loop: loop)
    server = EmbeddedChannel(loop: loop)
    stream = ByteStreamHandler(
      .patient, peer: "localhost:1", host: "localhost", sent: { _ in }, sink: events.receive)
    let trust = try NetTrust.file(Certificates.authority).context(for: WebAddress("tls://localhost:1"))
    try client.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
    try client.pipeline.syncOperations.addHandler(
      NIOSSLClientHandler(context: trust, serverHostname: "localhost"))
    try client.pipeline.syncOperations.addHandler(stream)
    try server.pipeline.syncOperations.addHandler(
      NIOSSLServerHandler(context: Certificates.localhost.context().context))
    for channel in [client, server] {
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/nowhere")).wait()
    }
    try exchange()
  }

  /// Carries bytes until neither side has any.
  func exchange() throws {
    var isQuiet = false
    while !isQuiet {
      isQuiet = true
      loop.run()
      for (from, to) in [(client, server), (server, client)] {
        while let bytes = try from.readOutbound(as: ByteBuffer.self) {
          isQuiet = false
          if to.isActive { try to.writeInbound(bytes) }
        }
      }
    }
  }

  /// Lets the timers run that are left.
  func end() {
    client.close(promise: nil)
    server.close(promise: nil)
    loop.advanceTime(by: .hours(1))
  }
}

@Suite("TLS's close alert", .timeLimit(.minutes(30))) struct ByteStreamAlertTests {
  @Test("TCP of a cancelled stream is closed as soon as the peer answers the close alert")
  func answered() throws {
    let pair = try SecurePair()
    defer { pair.end() }
    #expect(pair.events.count == 1 && pair.client.isActive)
    pair.stream.cancel()
    #expect(pair.events.count == 2 && pair.client.isActive)
    try pair.exchange()
    #expect(!pair.client.isActive)
  }

  @Test("a connection that breaks after the peer's close alert is lost, and no alert is missing")
  func brokenLater() throws {
    let pair = try SecurePair()
    defer { pair.end() }
    pair.server.close(promise: nil)
    try pair.exchange()
    #expect(pair.events.count == 2 && pair.client.isActive)
    pair.client.pipeline.fireChannelInactive()
    let problem = NetError(.lost, "connection to localhost:1 lost")
    guard case .closed(ByteStreamEnd(problem: problem)) = pair.events.all.last else {
      Issue.record("\(pair.events.all)")
      return
    }
  }
}

@Suite("a byte stream whose client has gone early") struct ByteStreamEarlyEndTests {
  @Test("a client that has gone when its stream is made ends the stream, and nobody keeps it")
  func gone() {
    let channel = EmbeddedChannel()
    // As a socket.
    channel.allowOptionsWhenClosed = false
    let events = StreamRecorder()
    weak var held: ByteStream?
    do {
      try ByteStream.accept(channel, .patient, peer: "the client") { stream in
        held = stream
        channel.close(promise: nil)
        // The receiver holds its stream.
        return { event in withExtendedLifetime(stream) { events.receive(event) } }
      }
      Issue.record("a stream on a closed channel was accepted")
    } catch { #expect(error is ChannelError) }
    let problem = NetError(.lost, "the client closed the connection before it was open")
    if case .closed(let end) = events.all.first { #expect(end.problem == problem && !end.isLocal) }
    #expect(events.count == 1)
    #expect(held == nil)
    channel.embeddedEventLoop.run()
  }
}
