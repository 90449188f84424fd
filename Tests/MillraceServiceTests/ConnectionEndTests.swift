import MillraceDialog
import MillraceNet
import MillraceService
import Testing

@Suite("What the end of a connection means") struct ConnectionEndTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var end: WebSocketEnd
    var category: DialogError.Category
    var reaction: DialogError.Reaction
    var testDescription: String {
      "\(end.problem?.kind.rawValue ?? "close") \(end.problem?.status ?? end.code)"
    }

    init(status: Int, _ category: DialogError.Category, _ reaction: DialogError.Reaction) {
      self.init(NetError(.refused, status: status, "refused"), category, reaction)
    }

    init(_ problem: NetError, _ category: DialogError.Category, _ reaction: DialogError.Reaction) {
      end = WebSocketEnd(code: 1006, problem: problem)
      self.category = category
      self.reaction = reaction
    }

    init(code: Int, _ category: DialogError.Category, _ reaction: DialogError.Reaction) {
      end = WebSocketEnd(code: code)
      self.category = category
      self.reaction = reaction
    }
  }

  @Test(
    "each end has one category and one reaction",
    arguments: [
      Case(status: 401, .auth, .refuse), Case(status: 403, .auth, .refuse),
      Case(NetError(.proxy, status: 407, "proxy"), .auth, .refuse), Case(status: 429, .quota, .reconnect),
      Case(status: 408, .network, .reconnect), Case(status: 404, .request, .refuse),
      Case(status: 302, .request, .refuse), Case(status: 200, .request, .refuse),
      Case(status: 503, .network, .reconnect), Case(NetError(.tls, "tls"), .network, .refuse),
      Case(NetError(.address, "address"), .network, .refuse),
      Case(NetError(.cancelled, "cancelled"), .network, .ended),
      Case(NetError(.lost, "lost"), .network, .reconnect),
      Case(NetError(.hostNotFound, "host"), .network, .reconnect), Case(code: 1000, .network, .ended),
      Case(code: 1008, .auth, .refuse), Case(code: 1011, .network, .reconnect),
    ])
  func table(item: Case) {
    let error = DialogError(item.end, vendor: "v")
    #expect(error.category == item.category && error.reaction == item.reaction)
    #expect(error.vendor == "v" && error.scope == .connection)
    #expect(error.code == item.end.problem?.status ?? item.end.code)
  }

  @Test(
    "a byte stream that the peer ended is opened again, one that this side ended is not, and a failure is what it is anywhere",
    arguments: [
      (ByteStreamEnd(), .network, .reconnect), (ByteStreamEnd(isLocal: true), .network, .ended),
      (ByteStreamEnd(problem: NetError(.lost, "lost")), .network, .reconnect),
      (ByteStreamEnd(problem: NetError(.tooLarge, "long"), isLocal: true), .network, .reconnect),
      (ByteStreamEnd(problem: NetError(.tls, "tls")), .network, .refuse),
      (ByteStreamEnd(problem: NetError(.proxy, status: 407, "proxy")), .auth, .refuse),
      (ByteStreamEnd(problem: NetError(.cancelled, "cancelled"), isLocal: true), .network, .ended),
    ] as [(ByteStreamEnd, DialogError.Category, DialogError.Reaction)])
  func streams(end: ByteStreamEnd, category: DialogError.Category, reaction: DialogError.Reaction) {
    let error = DialogError(end, vendor: "v")
    #expect(error.category == category && error.reaction == reaction)
    #expect(error.vendor == "v" && error.scope == .connection && error.text == end.description)
    #expect(error.name == end.problem?.kind.rawValue && error.code == end.problem?.status)
  }

  @Test("a refused key names the cure, and nothing else does")
  func cure() {
    let refused = WebSocketEnd(code: 1006, problem: NetError(.refused, status: 401, "refused with 401"))
    #expect(DialogError(refused, vendor: "v", cure: "; check it").text == "refused with 401; check it")
    let lost = WebSocketEnd(code: 1006, problem: NetError(.lost, "lost"))
    #expect(DialogError(lost, vendor: "v", cure: "; check it").text == "lost")
  }
}
