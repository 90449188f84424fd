import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

@Suite("Room server: the page", .timeLimit(.minutes(30))) struct ServerPageTests {
  private func get(
    _ rig: ServerRig, _ path: String = "/", method: String = "GET",
    _ headers: [(name: String, value: String)] = []
  ) async throws -> HTTPClient.Response {
    let address = try WebAddress("http://127.0.0.1:\(rig.server.port)\(path)")
    var request = HTTPClient.Request(method, address)
    request.headers = headers
    request.proxy = .direct
    request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
    return try await HTTPClient().run(request)
  }

  @Test(
    "the page and its script are served, and nothing else",
    arguments: [("/", "text/html; charset=utf-8"), ("/room.js", "text/javascript; charset=utf-8")])
  func files(path: String, type: String) async throws {
    let rig = try await ServerRig.begin()
    let bytes = try #require(RoomPage.files[path]?.bytes)
    let page = try await get(rig, path + "?name=Ann")
    #expect(page.status == 200 && page.body == bytes && !bytes.isEmpty)
    #expect(page["Content-Type"] == type)
    let head = try await get(rig, path, method: "HEAD")
    #expect(head.status == 200 && head.body.isEmpty && head["ETag"] == page["ETag"])
    let post = try await get(rig, path, method: "POST")
    #expect(post.status == 405 && post["Allow"] == "GET, HEAD")
    for other in ["/index.html", "/room.html", "//", "/room/", "/files/"] {
      #expect(try await get(rig, other).status == 404)
    }
    #expect(try await get(rig, RoomWire.path).status == 426)
    await rig.server.stop()
  }

  @Test("the page may load what it needs, and is shown nowhere else")
  func headers() async throws {
    let rig = try await ServerRig.begin()
    let page = try await get(rig)
    let host = "127.0.0.1:\(rig.server.port)"
    #expect(
      page["Content-Security-Policy"]
        == "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; "
        + "connect-src 'self' ws://\(host) wss://\(host); img-src data:; media-src blob: mediastream:; "
        + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
    #expect(page["X-Content-Type-Options"] == "nosniff")
    #expect(page["Referrer-Policy"] == "no-referrer")
    #expect(page["Permissions-Policy"] == "microphone=(self), camera=(self), display-capture=(self)")
    #expect(page["Cache-Control"] == "no-cache")
    #expect(page["Link"] == "</room.js>; rel=preload; as=script")
    #expect(try await get(rig, "/room.js")["Link"] == nil)
    await rig.server.stop()
  }

  @Test("a host that has no form in a policy does not get into it")
  func oddHost() async throws {
    let rig = try await ServerRig.begin()
    let page = try await get(rig, "/", [("Host", "[::1]:8080")])
    #expect(page.status == 200)
    #expect(page["Content-Security-Policy"]?.contains("connect-src 'self'; img-src") == true)
    await rig.server.stop()
  }

  @Test("a browser that has the page gets 304, one with an older page gets the new one")
  func notModified() async throws {
    let rig = try await ServerRig.begin()
    let tag = try #require(try await get(rig)["ETag"])
    for condition in [tag, "W/" + tag, "\"old\", " + tag, "*"] {
      let known = try await get(rig, "/", [("If-None-Match", condition)])
      #expect(known.status == 304 && known.body.isEmpty && known["ETag"] == tag, "\(condition)")
    }
    #expect(try await get(rig, "/", [("If-None-Match", "\"old\"")]).status == 200)
    #expect(try await get(rig, "/room.js", [("If-None-Match", tag)]).status == 200)
    await rig.server.stop()
  }

  @Test("a page of another origin cannot read it, and an unknown host name is refused")
  func refusals() async throws {
    let rig = try await ServerRig.begin()
    #expect(try await get(rig, "/", [("Origin", "https://evil.example")]).status == 403)
    #expect(try await get(rig, "/", [("Host", "evil.example")]).status == 403)
    await rig.server.stop()
  }

  @Test("a hub may do without the page")
  func noPage() async throws {
    let rig = try await ServerRig.begin { $0.hasPage = false }
    #expect(try await get(rig).status == 404)
    let (ann, _) = try await rig.member("ann")
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }
}
