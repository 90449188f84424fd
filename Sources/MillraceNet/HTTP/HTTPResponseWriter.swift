internal import NIOCore
internal import NIOHTTP1

/// Writes one response: head, content, end. On the event loop.
///
/// Content that is there already, bytes or a file, is written in pieces: the next one when the system has taken the one before, so that
/// memory stays bounded and a client that reads nothing is noticed.
final class HTTPResponseWriter: HTTPStream.Output {
  /// What it reports to the connection.
  struct Events {
    /// Something was written, and is unsent until the system takes it.
    var wrote: () -> Void
    /// The system took the oldest of what was written.
    var taken: () -> Void
    /// The end is about to be written; whether the connection can serve another request after it.
    var ends: (_ isLast: Bool) -> Void
    /// Everything was sent.
    var sent: () -> Void
    /// The response cannot be completed.
    var failed: (NetError) -> Void
  }

  private enum Source {
    case bytes(ArraySlice<UInt8>)
    case file(HTTPFile, Range<Int>)
    case stream(HTTPStream)
    case none
  }

  /// Bytes of a piece.
  private static let piece = 65_536

  private let context: ChannelHandlerContext
  private let request: HTTPRequestHead?
  private let events: Events
  private var isLast: Bool
  private var source = Source.none
  private var isOver = false

  /// - Parameters:
  ///   - request: what is answered; nil: something that was not read to the end of its head.
  ///   - isLast: the connection closes after it.
  init(_ context: ChannelHandlerContext, to request: HTTPRequestHead?, isLast: Bool, _ events: Events) {
    self.context = context
    self.request = request
    self.isLast = isLast
    self.events = events
  }

  // MARK: Beginning

  /// - Parameter makeStream: makes the stream for content that comes later.
  func begin(_ response: HTTPServer.Response, _ makeStream: () -> HTTPStream) {
    guard response.headers.allSatisfy({ HTTPText.problem($0.name, $0.value) == nil }),
      (200...599).contains(response.status)
    else {
      begin(.text("the server's code gave an invalid status or header\n", status: 500), makeStream)
      return
    }
    switch response.content {
    case .bytes(let bytes): begin(response, count: bytes.count, .bytes(bytes[...]))
    case .file(let path): open(path, response)
    case .stream(let begin):
      // HTTP/1.0 has no chunks: the end of the connection is the end of the content.
      if isHTTP10 { isLast = true }
      let stream = makeStream()
      writeHead(response, count: nil)
      guard hasContent(response.status) else { return streamNothing(stream, begin) }
      source = .stream(stream)
      flush()
      stream.open(to: self, begin)
    }
  }

  /// A stream for a client that wants no content.
  private func streamNothing(
    _ stream: HTTPStream, _ begin: @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void
  ) {
    finish()
    stream.open(to: self, begin)
    stream.close(nil)
  }

  private func open(_ path: String, _ response: HTTPServer.Response) {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    HTTPFile.onPool(context.eventLoop) { HTTPFile(path) }.whenComplete { result in
      let writer = bound.value
      guard !writer.isOver else { return }
      guard case .success(let file?) = result else {
        let response = HTTPServer.Response.text("file not found\n", status: 404)
        guard case .bytes(let bytes) = response.content else { return }
        return writer.begin(response, count: bytes.count, .bytes(bytes[...]))
      }
      writer.begin(response, file)
    }
  }

  private func begin(_ response: HTTPServer.Response, _ file: HTTPFile) {
    var response = response
    response.headers.append(("Accept-Ranges", "bytes"))
    // A range that depends on a validator would need one: without, the answer is the whole file, RFC 9110 section 13.1.5.
    let mayBePart =
      request?.method == .GET && response.status == 200
      && request?.headers.contains(name: "If-Range") == false
    switch HTTPRange(mayBePart ? request?.headers.first(name: "Range") : nil, of: file.size) {
    case .whole: begin(response, count: file.size, .file(file, 0..<file.size))
    case .part(let range):
      response.status = 206
      response.headers.append(
        ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size)"))
      begin(response, count: range.count, .file(file, range))
    case .unsatisfiable:
      response.status = 416
      response.headers.append(("Content-Range", "bytes */\(file.size)"))
      begin(response, count: 0, .none)
    }
  }

  private func begin(_ response: HTTPServer.Response, count: Int, _ source: Source) {
    writeHead(response, count: count)
    guard hasContent(response.status), count > 0 else { return finish() }
    self.source = source
    writeNext()
  }

  private var isHTTP10: Bool { request?.version == .http1_0 }

  private func hasContent(_ status: Int) -> Bool {
    request?.method != .HEAD && status != 204 && status != 304
  }

  /// - Parameter count: bytes of the content; nil: not known yet.
  private func writeHead(_ response: HTTPServer.Response, count: Int?) {
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    // How the content is framed is decided here alone.
    headers.remove(name: "Transfer-Encoding")
    headers.remove(name: "Content-Length")
    if let count {
      // RFC 9110 section 8.6: 204 has none; 304 may have none.
      if response.status != 204 && response.status != 304 {
        headers.add(name: "Content-Length", value: "\(count)")
      }
    } else if hasContent(response.status) && !isHTTP10 {
      headers.add(name: "Transfer-Encoding", value: "chunked")
    }
    if !headers.contains(name: "Cache-Control") { headers.add(name: "Cache-Control", value: "no-store") }
    headers.replaceOrAdd(name: "Connection", value: isLast ? "close" : "keep-alive")
    let head = HTTPResponseHead(
      version: request?.version ?? .http1_1, status: HTTPResponseStatus(statusCode: response.status),
      headers: headers)
    context.write(NIOAny(HTTPServerResponsePart.head(head)), promise: nil)
  }

  // MARK: Content

  private func writeNext() {
    guard !isOver else { return }
    switch source {
    case .none: finish()
    case .stream: return
    case .bytes(let bytes):
      let piece = bytes.prefix(Self.piece)
      source = piece.count < bytes.count ? .bytes(bytes.dropFirst(Self.piece)) : .none
      write(ByteBuffer(bytes: piece))
    case .file(let file, let range):
      let count = min(Self.piece, range.count)
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      HTTPFile.onPool(context.eventLoop) { file.read(at: range.lowerBound, count) }.whenComplete { result in
        bound.value.take(file, range, try? result.get())
      }
    }
  }

  /// A piece of the file was read, or could not be.
  private func take(_ file: HTTPFile, _ range: Range<Int>, _ buffer: ByteBuffer?) {
    guard !isOver else { return }
    guard let buffer else {
      // The length was announced: only the end of the connection tells the client that the rest is missing.
      return events.failed(
        NetError(.lost, "a file could not be read to the end that it had at the beginning"))
    }
    let rest = (range.lowerBound + buffer.readableBytes)..<range.upperBound
    source = rest.isEmpty ? .none : .file(file, rest)
    write(buffer)
  }

  /// Writes a piece of content that is there already; the last one together with the end.
  private func write(_ buffer: ByteBuffer) {
    guard case .none = source else {
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      let loop = context.eventLoop
      flush(buffer).whenSuccess {
        // Not at once: this may still be within the write, and each piece would go one level deeper.
        loop.execute { bound.value.writeNext() }
      }
      return
    }
    context.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(buffer))), promise: nil)
    finish()
  }

  /// Writes what was written so far, and reports the result to the connection.
  @discardableResult
  private func flush(_ buffer: ByteBuffer? = nil, _ promise: EventLoopPromise<Void>? = nil)
    -> EventLoopFuture<Void>
  {
    let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    events.wrote()
    promise.futureResult.whenComplete { result in bound.value.written(result) }
    context.writeAndFlush(
      NIOAny(HTTPServerResponsePart.body(.byteBuffer(buffer ?? ByteBuffer()))), promise: promise)
    return promise.futureResult
  }

  private func written(_ result: Result<Void, any Error>) {
    switch result {
    case .success: events.taken()
    case .failure:
      if !isOver { events.failed(NetError(.lost, "the client closed the connection")) }
    }
  }

  private func finish() {
    guard !isOver else { return }
    isOver = true
    let events = events
    // Before the end is written: the next request may arrive within the write.
    events.ends(isLast)
    events.wrote()
    let bound = NIOLoopBound(events, eventLoop: context.eventLoop)
    context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil))).whenComplete { result in
      switch result {
      case .success:
        bound.value.taken()
        bound.value.sent()
      case .failure: bound.value.failed(NetError(.lost, "the client closed the connection"))
      }
    }
  }

  /// The exchange is over.
  func close(_ problem: NetError?) {
    isOver = true
    if case .stream(let stream) = source {
      source = .none
      stream.close(problem)
    }
  }

  // MARK: HTTPStream.Output

  func write(_ bytes: [UInt8], _ promise: EventLoopPromise<Void>) {
    guard !isOver else { return promise.fail(ChannelError.ioOnClosedChannel) }
    flush(ByteBuffer(bytes: bytes), promise)
  }

  func end() { finish() }

  func abort() {
    guard !isOver else { return }
    events.failed(NetError(.cancelled, "the server's code broke the response off"))
  }
}
