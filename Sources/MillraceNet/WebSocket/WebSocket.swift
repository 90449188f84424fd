internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket
internal import Synchronization

/// A WebSocket, RFC 6455: a client's, or one that a server was given.
///
/// Events come on the thread of the sockets (`NetLoop`), `closed` once and last, whatever happened: also when it never opened.
/// Sending and closing may be called from any thread; they ask the heap.
///
/// Not done: extensions (compression costs 300 KB a connection and time on every frame of sound that does not shrink), and
/// redirects. A server's certificate is always verified unless it is this machine's own.
@safe
public final class WebSocket: Sendable {
  /// What lives on the loop.
  private struct Core {
    var wire: WebSocketWire?
    var channel: (any Channel)?
    var isPaused = false
    var isOver = false
    var opening: Scheduled<Void>?
  }

  private let loop: any EventLoop
  private let core: NIOLoopBoundBox<Core>
  private let events: @Sendable (WebSocketEvent) -> Void
  private let limits: WebSocketLimits
  private let queued = Atomic<Int>(0)
  private let wasRefused = Atomic<Bool>(false)

  init(
    _ limits: WebSocketLimits, on loop: any EventLoop, events: @escaping @Sendable (WebSocketEvent) -> Void
  ) {
    self.loop = loop
    self.limits = limits
    self.events = events
    core = .makeBoxSendingValue(Core(), eventLoop: loop)
  }

  /// Opens one. Answers at once; `opened` or `closed` follows. `NetLoop.begin` comes first where this process may be out of descriptors.
  public static func open(
    _ request: WebSocketRequest, events: @escaping @Sendable (WebSocketEvent) -> Void
  ) -> WebSocket {
    let loop = NetLoop.shared.loop
    let socket = WebSocket(request.limits, on: loop, events: events)
    loop.execute { socket.begin(request) }
    return socket
  }

  // MARK: Any thread

  /// Sends a message. False, and nothing is sent, when more than the backlog of the limits would wait; `drained` follows then.
  /// A message that is larger than all of the backlog goes when nothing else waits. What is sent before `opened` or after the
  /// end is lost.
  public func send(_ bytes: [UInt8], isText: Bool) -> Bool {
    let count = bytes.count
    let before = queued.load(ordering: .relaxed)
    guard before == 0 || before + count <= limits.backlog else {
      wasRefused.store(true, ordering: .sequentiallyConsistent)
      // Drained in between: nobody else would tell.
      if queued.load(ordering: .sequentiallyConsistent) == 0 { onLoop { $0.noteSent(0) } }
      return false
    }
    queued.add(count, ordering: .relaxed)
    onLoop { $0.write(bytes, isText: isText, count) }
    return true
  }

  /// Sends a text.
  public func send(text: String) -> Bool { send(Array(text.utf8), isText: true) }

  /// Bytes that wait to be sent.
  public var backlog: Int { queued.load(ordering: .relaxed) }

  /// Says good-bye and waits for the other side's, for as long as the limits say. A code that must not be sent (RFC 6455
  /// section 7.4) becomes 1000.
  public func close(code: Int = 1000, reason: String = "") {
    let code = WebSocketAssembler.mayBeSent(code) ? code : 1000
    onLoop { socket in
      guard let wire = socket.openWire else {
        socket.abandon()
        return
      }
      wire.close(code, reason)
    }
  }

  /// Hangs up at once, without a good-bye. `closed` follows without waiting for the other side.
  public func cancel() {
    onLoop { socket in
      guard let wire = socket.openWire else {
        socket.abandon()
        return
      }
      wire.cancel()
    }
  }

  /// Stops reading: no more messages come, save the few that were read already when `pause` was called from elsewhere than an event.
  public func pause() { onLoop { $0.setPaused(true) } }

  /// Goes on reading.
  public func resume() { onLoop { $0.setPaused(false) } }

  private func onLoop(_ body: @escaping @Sendable (WebSocket) -> Void) {
    if loop.inEventLoop {
      body(self)
    } else {
      loop.execute { body(self) }
    }
  }

  // MARK: Loop

  /// The wire, once frames may go over it.
  private var openWire: WebSocketWire? {
    guard let wire = core.value.wire, wire.hasBegun else { return nil }
    return wire
  }

  private func setPaused(_ isPaused: Bool) {
    core.value.isPaused = isPaused
    core.value.wire?.setPaused(isPaused)
  }

  private func write(_ bytes: [UInt8], isText: Bool, _ count: Int) {
    guard let wire = openWire else {
      noteSent(count)
      return
    }
    let promise = loop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] _ in noteSent(count) }
    wire.send(isText ? .text : .binary, bytes, promise: promise)
  }

  private func noteSent(_ count: Int) {
    let left = queued.subtract(count, ordering: .sequentiallyConsistent).newValue
    guard left <= limits.backlog / 2, wasRefused.exchange(false, ordering: .sequentiallyConsistent) else {
      return
    }
    tell(.drained)
  }

  /// Hands an event on; none after the end.
  private func tell(_ event: WebSocketEvent) {
    guard !core.value.isOver else { return }
    if case .closed = event {
      core.value.isOver = true
      core.value.wire = nil
      core.value.channel = nil
      core.value.opening?.cancel()
    }
    events(event)
  }

  private func begin(_ request: WebSocketRequest) {
    guard !core.value.isOver else { return }
    if let problem = request.problem {
      end(problem)
      return
    }
    let place = request.address.place
    let time = request.limits.open
    core.value.opening = loop.scheduleTask(in: .milliseconds(Int64(time))) { [self] in
      end(NetProblem(.timeout, "\(place) did not open a WebSocket within \(time) ms"))
    }
    let opening = Opening(
      address: request.address, proxy: request.proxy, trust: request.trust,
      timeout: .milliseconds(Int64(time)))
    let key = NIOWebSocketClientUpgrader.randomRequestKey()
    let bound = NIOLoopBound(self, eventLoop: loop)
    opening.open(on: loop) { bound.value.keep($0) }.flatMap { [self] channel in
      HTTPExchange.run(
        on: channel, Self.head(request, key), body: [], limit: 65_536, place: place,
        host: request.address.host
      ) { [self] answer in
        try upgrade(channel, request, answer, key)
      }
    }.map { [self] _ in core.value.wire?.begin() }.whenFailure { [self] error in
      end(NetWords.problem(error, place, request.address.host))
    }
  }

  /// A connection is there, if nothing more: it is closed when time is up or nobody wants it any more.
  private func keep(_ channel: any Channel) {
    if core.value.isOver { channel.close(promise: nil) } else { core.value.channel = channel }
  }

  /// It did not come to be, or is not wanted any more.
  private func end(_ problem: NetProblem) {
    let channel = core.value.channel
    tell(.closed(WebSocketEnd(code: 1006, problem: problem, isOurs: problem.kind == .cancelled)))
    channel?.close(promise: nil)
  }

  private func abandon() { end(NetProblem(.cancelled, "it was given up before it was open")) }

  private static func head(_ request: WebSocketRequest, _ key: String) -> HTTPRequestHead {
    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: request.address.target)
    if !request.headers.contains(where: { $0.name.lowercased() == "host" }) {
      head.headers.add(name: "Host", value: request.address.hostHeader)
    }
    head.headers.add(name: "Connection", value: "Upgrade")
    head.headers.add(name: "Upgrade", value: "websocket")
    upgrader(key).addCustom(upgradeRequestHeaders: &head.headers)
    if !request.protocols.isEmpty {
      head.headers.add(name: "Sec-WebSocket-Protocol", value: request.protocols.joined(separator: ", "))
    }
    for (name, value) in request.headers { head.headers.add(name: name, value: value) }
    return head
  }

  /// Knows the key's answer; nothing else of it is used.
  private static func upgrader(_ key: String) -> NIOWebSocketClientUpgrader {
    NIOWebSocketClientUpgrader(requestKey: key) { channel, _ in channel.eventLoop.makeSucceededVoidFuture() }
  }

  private func upgrade(
    _ channel: any Channel, _ request: WebSocketRequest, _ answer: HTTPAnswer, _ key: String
  ) throws {
    guard !core.value.isOver else { throw NetProblem(.cancelled, "nobody wants it any more") }
    let place = request.address.place
    guard answer.status == 101 else {
      throw NetProblem(
        .refused, status: answer.status,
        "\(place) does not open a WebSocket: it answers with status \(answer.status)")
    }
    let chosen = answer.headers.first(name: "Sec-WebSocket-Protocol")
    guard answer.headers[canonicalForm: "Upgrade"].contains(where: { $0.lowercased() == "websocket" }),
      answer.headers[canonicalForm: "Connection"].contains(where: { $0.lowercased() == "upgrade" }),
      Self.upgrader(key).shouldAllowUpgrade(upgradeResponse: answer.head),
      answer.headers.first(name: "Sec-WebSocket-Extensions") == nil,
      chosen.map(request.protocols.contains) ?? true
    else { throw NetProblem(.garbled, "\(place) answers the handshake of a WebSocket wrongly") }
    core.value.opening?.cancel()
    try attach(
      to: channel, isServer: false, place: place, host: request.address.host, subprotocol: chosen)
  }

  /// Becomes the end of a channel's pipeline.
  /// - Parameter hasCodec: encoder and decoder of frames are there already.
  func attach(
    to channel: any Channel, isServer: Bool, place: String, host: String, subprotocol: String?,
    hasCodec: Bool = false
  ) throws {
    guard !core.value.isOver else {
      channel.close(promise: nil)
      return
    }
    let bound = NIOLoopBound(self, eventLoop: loop)
    let wire = WebSocketWire(
      isServer: isServer, limits: limits, place: place, host: host, subprotocol: subprotocol
    ) { bound.value.tell($0) }
    core.value.wire = wire
    core.value.channel = channel
    let pipeline = channel.pipeline.syncOperations
    // A frame is held in full before it is looked at; a message of many frames is bounded behind.
    if !hasCodec {
      try pipeline.addHandlers([
        WebSocketFrameEncoder(), ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: limits.frame)),
      ])
    }
    try pipeline.addHandler(wire)
    if core.value.isPaused { wire.setPaused(true) }
    if hasCodec { wire.begin() }
  }
}
