import MillraceCore
import Testing

@testable import MillraceNet

@Suite("addresses") struct AddressTests {
  @Test(
    "an address is taken apart",
    arguments: [
      ("wss://Example.org/a/b?c=d#e", "example.org", 443, "/a/b?c=d", "example.org"),
      ("ws://localhost:8080", "localhost", 8080, "/", "localhost:8080"),
      ("http://[::1]:81?x", "::1", 81, "/?x", "[::1]:81"), ("HTTPS://h:443/", "h", 443, "/", "h"),
    ])
  func good(text: String, host: String, port: Int, target: String, header: String) throws {
    let address = try WebAddress(text)
    #expect(address.host == host && address.port == port && address.target == target)
    #expect(address.hostHeader == header)
  }

  @Test(
    "what is none is refused in words, without its content",
    arguments: [
      ("", "an address begins with one of ws, wss, http, https"),
      ("ftp://x", "an address begins with one of ws, wss, http, https"),
      ("ws:/x", "behind \"ws:\" two slashes are due"), ("ws://", "an address needs a host"),
      ("ws://u:secret@h/", "an address must hold no user or password; send them in a header"),
      ("ws://h:0", "a port is a number from 1 to 65535"),
      ("ws://h:99999", "a port is a number from 1 to 65535"),
      ("ws://h\r\nX: y", "an address holds no spaces or control characters"),
      ("ws://[::1", "an address of IPv6 lacks its \"]\""),
      ("ws://[::1]x", "behind \"]\" only a port may stand"),
      ("ws://[::1]]", "behind \"]\" only a port may stand"),
      ("ws://[localhost]:80", "only an address of IPv6 may stand between \"[\" and \"]\""),
      ("ws://[127.0.0.1]", "only an address of IPv6 may stand between \"[\" and \"]\""),
      ("ws://[::1%25eth0]", "only an address of IPv6 may stand between \"[\" and \"]\""),
      ("ws://a[::1]", "an address of IPv6 stands in brackets: [::1]"),
      ("ws://a\\b", "a host holds letters, digits, dots and hyphens"),
      ("ws://a%2fb", "a host holds letters, digits, dots and hyphens"),
      ("ws://::1", "an address of IPv6 stands in brackets: [::1]"),
      ("ws://h:+80", "a port is a number from 1 to 65535"),
      (
        "ws://m\u{FC}ller.de",
        "an address holds no letters beyond ASCII; write them as %C3%BC, and in a host as xn--"
      ),
    ])
  func bad(text: String, words: String) {
    #expect { try WebAddress(text) } throws: { "\($0)" == words }
  }

  @Test(
    "a host is a name or a number, and what stands in brackets is an address of IPv6",
    arguments: [
      "ws://[x]", "ws://[[::1]", "ws://[1.2.3.4]", "ws://a]b", "ws://a[", "ws://a\\b", "ws://a\"b",
      "ws://a%b", "ws://.", "ws://.a", "ws://a..b",
    ])
  func badHosts(text: String) throws {
    #expect(throws: NetProblem.self) { try WebAddress(text) }
    for text in [
      "ws://a-b_c.example.org:1", "ws://[fe80::1]:1", "ws://[::ffff:1.2.3.4]", "ws://example.org.",
    ] {
      let address = try WebAddress(text)
      #expect(try WebAddress("ws://\(address.place)") == address)
    }
  }

  @Test("a mark of Unicode behind a slash or an @ does not hide it")
  func marks() throws {
    #expect(throws: NetProblem.self) { try NetProxy.Place("ws://\u{317}a@proxy:81") }
    #expect(try NetProxy.Place("http://u:p@\u{317}q@proxy:81").credentials == "u:p@\u{317}q")
    #expect(throws: NetProblem.self) { try NetProxy.Place("http://u:p@\u{317}proxy:81") }
  }

  @Test("a proxy is shown as it is written: a number of IPv6 in its brackets")
  func proxyShown() throws {
    let proxy = try NetProxy.Place("http://u:p@[::1]:81")
    #expect(proxy.description == "[::1]:81")
    #expect(try NetProxy.Place(proxy.description).host == "::1")
  }

  @Test(
    "percent escapes of credentials are two hexadecimal digits; anything else stays",
    arguments: [("%41%2f", "A/"), ("%-0", "%-0"), ("%+1", "%+1"), ("%4", "%4"), ("%zz", "%zz")])
  func escapes(text: String, credentials: String) throws {
    #expect(try NetProxy.Place("\(text)@p:1").credentials == credentials)
  }

  @Test("this machine is known by name and number, and no other by a likeness")
  func loopback() throws {
    for host in ["localhost", "127.0.0.1", "127.9.8.7", "[::1]"] {
      #expect(try WebAddress("ws://\(host)").isLoopback)
    }
    for host in [
      "127.0.0.1.example.org", "127.1", "localhost.example.org", "128.0.0.1", "127.0.0.256",
    ] {
      #expect(!WebAddress.isLoopback(host))
    }
    #expect(!WebAddress.isLoopback("127.+0.0.1"))
  }

  @Test("proxies are found as the variables say, in either case, and not for hosts that are exempt")
  func proxies() throws {
    func place(_ address: String, _ variables: [String: String]) throws -> NetProxy.Place? {
      try NetProxy.place(for: WebAddress(address)) { variables[$0] }
    }
    #expect(try place("wss://a.b", ["https_proxy": "http://p:3128"]) == NetProxy.Place(host: "p", port: 3128))
    #expect(try place("ws://a.b", ["HTTPS_PROXY": "p:1"]) == nil)
    #expect(try place("ws://a.b", ["HTTP_PROXY": "p:1"])?.port == 1)
    #expect(try place("wss://a.b", ["ALL_PROXY": "http://u%40x:p%3Aw@p:1"])?.credentials == "u@x:p:w")
    #expect(try place("wss://127.0.0.1", ["ALL_PROXY": "p:1"]) == nil)
    for list in ["a.b", "x, .a.b", "*", "b"] {
      #expect(try place("wss://c.a.b", ["ALL_PROXY": "p:1", "NO_PROXY": list]) == nil, "\(list)")
    }
    #expect(try place("wss://xa.b", ["ALL_PROXY": "p:1", "NO_PROXY": "a.b"]) != nil)
    #expect { try place("wss://a.b", ["ALL_PROXY": "socks5://u:secret@p:1"]) } throws: {
      "\($0)" == "the proxy in ALL_PROXY: a proxy's address begins with http://"
    }
  }

  @Test("what may be shown of a request, a call and a proxy has neither header, query nor password")
  func shown() throws {
    let address = try WebAddress("wss://example.org/a?key=secret")
    var request = WebSocketRequest(address)
    request.headers = [("Authorization", "secret")]
    request.proxy = .at(NetProxy.Place(host: "p", port: 1, credentials: "u:secret"))
    var call = HTTPCall("POST", address)
    call.headers = request.headers
    call.body = Array("secret".utf8)
    #expect("\(request)" == "wss://example.org:443" && "\(call)" == "POST wss://example.org:443")
    #expect(!"\(request.proxy)".contains("secret"))
  }

  @Test(
    "a certificate's name is the host's, or has a star for its first label",
    arguments: [
      ("a.b.c", "a.b.c", true), ("a.b.c.", "A.B.c", true), ("a.b.c", "*.b.c", true), ("a.b.c", "*.c", false),
      ("b.c", "*.c", false), ("b.c", "*.b.c", false), (".b.c", "*.b.c", false), ("aa.b.c", "a*.b.c", false),
      ("a.b.c", "*", false), ("a.b.c", "a.b.c.d", false), ("localhost", "localhost", true),
    ])
  func names(host: String, pattern: String, fits: Bool) {
    #expect(ServerName(host).matches(pattern) == fits)
  }

  @Test("Base64 is that of RFC 4648")
  func base64() {
    let pairs = [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ]
    for (text, code) in pairs { #expect(Base64.encode(Array(text.utf8)) == code) }
  }

  @Test(
    "a credential goes to another machine over TLS only, whatever header or name of the query holds it",
    arguments: [
      ("ws://example.org", "Authorization", true), ("ws://example.org", "X-Api-Key", true),
      ("http://example.org", "cookie", true), ("ws://example.org", "X-Dash-Token", true),
      ("ws://example.org", "X-Keyboard", false), ("wss://example.org", "Authorization", false),
      ("ws://localhost", "Authorization", false), ("ws://[::1]", "Authorization", false),
      ("ws://example.org/?access_token=secret", "X", true), ("ws://example.org/?a=1&token=secret", "X", true),
      ("ws://example.org/token?a=key", "X", false), ("wss://example.org/?token=secret", "X", false),
    ])
  func credentials(text: String, header: String, isRefused: Bool) throws {
    var request = WebSocketRequest(try WebAddress(text))
    request.headers = [(header, "secret")]
    #expect((request.problem != nil) == isRefused)
    #expect(
      (request.problem?.text.hasSuffix("or allow plain") ?? true)
        && request.problem?.text.contains("secret") != true)
    request.allowsPlainCredentials = true
    #expect(request.problem == nil)
  }

  @Test(
    "whatever name is hidden in words of the program is one whose value goes over TLS only",
    arguments: [
      "token", "X-Auth-Token", "secret", "Password", "passphrase", "Authorization", "X-Signature", "sig",
      "sign",
      "pwd", "pin", "usersig", "UserSig", "appKey", "X-AppKey", "accessKey", "X-AccessKey", "PrivateKey",
      "streamKey", "api_key", "key", "cookie", "bearer", "auth", "credentials",
    ])
  func sameNames(name: String) {
    #expect(CredentialName.isOne(name))
    #expect(HTTPText.isCredential(name))
  }

  @Test("a call over HTTP keeps a credential to itself before anything is looked up")
  func callCredentials() async throws {
    var call = HTTPCall("POST", try WebAddress("http://service.invalid/token"))
    call.headers = [("Authorization", "secret")]
    await #expect { _ = try await call.run() } throws: {
      ($0 as? NetProblem)?.text
        == "the header \"Authorization\" would go to service.invalid:80 in plain text; begin the address with https:, or allow plain"
    }
    call.allowsPlainCredentials = true
    await #expect { _ = try await call.run() } throws: { ($0 as? NetProblem)?.kind != .address }
  }
}
