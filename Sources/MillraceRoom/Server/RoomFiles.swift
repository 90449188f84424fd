internal import MillraceCore
internal import MillraceNet
internal import MillraceRoomWire

/// The files of rooms over HTTP: `POST /files` with a ticket takes one, `GET /files/<id>` gives it to whoever knows its id.
///
/// Neither direction holds a file as a whole: what arrives goes into the hub piece by piece, and what is read is taken from there piece by
/// piece, so that a file is gone with its room for those who are still reading it. What somebody has shared is nothing that this server
/// vouches for: browsers save it and never show it as a page of the hub's origin.
///
/// Each transfer takes a connection by which others load the page and come in: there are fewer transfers than connections
/// (`RoomFileLimits`), and none may take as long as it likes.
enum RoomFiles {
  private static let below = RoomWire.filesPath + "/"
  private static let scheme = "bearer "

  /// Nil: the request is about something else.
  static func decide(_ request: HTTPServer.Request, _ hub: LiveHub) -> HTTPServer.Decision? {
    let path = request.path
    if path == RoomWire.filesPath { return upload(request, hub) }
    guard path.hasPrefix(below) else { return nil }
    return download(request, String(path.dropFirst(below.count)), hub)
  }

  private static func wrongMethod(_ allowed: String) -> HTTPServer.Response {
    var response = HTTPServer.Response.text("only \(allowed) is understood here\n", status: 405)
    response.headers.append(("Allow", allowed))
    return response
  }

  // MARK: Uploads

  private static func upload(_ request: HTTPServer.Request, _ hub: LiveHub) -> HTTPServer.Decision {
    guard request.method == "POST" else { return .answer(wrongMethod("POST")) }
    guard let ticket = ticket(in: request) else {
      let text = "send a ticket as \"Authorization: Bearer\"; the answer to the request \"file\" has one"
      return .refuse(status: 401, text)
    }
    let address = ClientAddress.counted(request.peer)
    switch hub.beginUpload(ticket, length: length(of: request), from: address) {
    case .failure(let refusal): return .refuse(status: refusal.status, refusal.text)
    case .success(let upload):
      return .stream(limit: upload.bytes) { reply in
        reply.whenOver { _ in hub.endUpload(by: address) }
        return { event in take(event, of: upload.file, hub, reply) }
      }
    }
  }

  private static func ticket(in request: HTTPServer.Request) -> String? {
    guard let header = request[header: "Authorization"], header.lowercased().hasPrefix(scheme) else {
      return nil
    }
    let ticket: String = header.dropFirst(scheme.count).filter { $0 != " " }
    return ticket
  }

  /// Nil where the content has no length of its own (RFC 9112 section 6.3).
  private static func length(of request: HTTPServer.Request) -> Int? {
    guard request[header: "Transfer-Encoding"] == nil else { return nil }
    return request[header: "Content-Length"].flatMap { Int($0) }
  }

  private static func take(
    _ event: HTTPServer.BodyEvent, of file: RoomName, _ hub: LiveHub, _ reply: HTTPReply
  ) {
    switch event {
    case .bytes(let bytes): if !hub.takeUpload(bytes, of: file) { reply.send(gone) }
    case .end:
      let headers = [(name: "Location", value: below + file.rawValue)]
      reply.send(hub.endUpload(of: file) ? HTTPServer.Response(status: 201, headers: headers) : gone)
    case .failed: hub.abandonUpload(of: file)
    }
  }

  private static var gone: HTTPServer.Response {
    .text(RoomFileRefusal.over.text + "\n", status: RoomFileRefusal.over.status)
  }

  // MARK: Downloads

  private static func download(
    _ request: HTTPServer.Request, _ name: String, _ hub: LiveHub
  ) -> HTTPServer.Decision {
    guard let id = RoomName(name), let file = hub.file(id) else { return .answer(unknown) }
    switch request.method {
    case "GET":
      return .receive { request, reply in read(id, hub, ClientAddress.counted(request.peer), reply) }
    case "HEAD":
      let nothing: @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void = { stream in
        stream.end()
        return { _ in }
      }
      return .answer(HTTPServer.Response(headers: headers(of: file), content: .stream(nothing)))
    default: return .answer(wrongMethod("GET, HEAD"))
    }
  }

  /// Has a file read, where there are not too many who do.
  private static func read(_ id: RoomName, _ hub: LiveHub, _ address: String, _ reply: HTTPReply) {
    guard let file = hub.file(id) else { return reply.send(unknown) }
    guard hub.beginDownload(by: address) else { return reply.send(tooMany) }
    // Also where the client has gone before the first byte.
    reply.whenOver { _ in hub.endDownload(by: address) }
    reply.send(HTTPServer.Response(headers: headers(of: file), content: .stream(sending(id, hub))))
  }

  private static var unknown: HTTPServer.Response {
    .text("there is no such file, or no longer: files go with their room\n", status: 404)
  }

  private static var tooMany: HTTPServer.Response {
    var response = HTTPServer.Response.text("too many files are being read; try again in 2 s\n", status: 503)
    response.headers.append(("Retry-After", "2"))
    return response
  }

  private static func headers(of file: RoomFile) -> [(name: String, value: String)] {
    [
      (name: "Content-Type", value: RoomFileHeaders.type(file.type)),
      (name: "Content-Disposition", value: RoomFileHeaders.disposition(file.name)),
      (name: "X-Content-Type-Options", value: "nosniff"),
      (name: "Content-Security-Policy", value: "sandbox"),
      (name: "Cross-Origin-Resource-Policy", value: "same-origin"),
    ]
  }

  /// Sends the pieces of a file, as fast as they are taken. What is left when the time for it is over is not sent, and the client sees that
  /// it is missing.
  private static func sending(
    _ id: RoomName, _ hub: LiveHub
  ) -> @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void {
    { stream in
      let next = Locked(0)
      let advance: @Sendable () -> Void = {
        while let piece = hub.piece(next.withLock { $0 }, of: id) {
          guard !piece.isEmpty else { return stream.end() }
          guard stream.send(piece) else { return }
          next.withLock { $0 += 1 }
        }
        // The file has gone: the client sees that the rest is missing.
        stream.cancel()
      }
      let timer = hub.loop.run(after: hub.downloadTime) { stream.cancel() }
      advance()
      return { event in
        switch event {
        case .drained: advance()
        case .closed: timer.cancel()
        }
      }
    }
  }
}
