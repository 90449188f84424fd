import MillraceCore
import Testing

@testable import MillraceNet

@Suite("URLs, proxies and credentials") struct AddressTests {
  @Test(
    "an address is parsed into host, port and target",
    arguments: [
      ("wss://Example.org/a/b?c=d#e", "example.org", 443, "/a/b?c=d", "example.org"),
      ("ws://localhost:8080", "localhost", 8080, "/", "localhost:8080"),
      ("tcp://h:443", "h", 443, "/", "h:443"), ("tls://[::1]:80/", "::1", 80, "/", "[::1]:80"),
      ("http://[::1]:81?x", "::1", 81, "/?x", "[::1]:81"), ("HTTPS://h:443/", "h", 443, "/", "h"),
    ])
  func good(text: String, host: String, port: Int, target: String, header: String) throws {
    let address = try WebAddress(text)
    #expect(address.host == host && address.port == port && address.target == target)
    #expect(address.hostHeader == header)
  }

  @Test(
    "an invalid address is refused with a message that does not repeat it",
    arguments: [
      ("", "an address must begin with one of ws, wss, http, https, tcp, tls"),
      ("ftp://x", "an address must begin with one of ws, wss, http, https, tcp, tls"),
      ("ws:/x", "\"ws:\" must be followed by two slashes"), ("ws://", "an address needs a host"),
      ("ws://u:secret@h/", "an address must not contain a user or password; send them in a header"),
      ("ws://h:0", "a port must be a number from 1 to 65535"),
      ("ws://h:99999", "a port must be a number from 1 to 65535"),
      ("ws://h\r\nX: y", "an address must not contain spaces or control characters"),
      ("ws://[::1", "the closing \"]\" of an IPv6 address is missing"),
      ("ws://[::1]x", "only a port may follow \"]\""),
      ("ws://[::1]]", "only a port may follow \"]\""),
      ("ws://[localhost]:80", "only an IPv6 address may be enclosed in \"[\" and \"]\""),
      ("ws://[127.0.0.1]", "only an IPv6 address may be enclosed in \"[\" and \"]\""),
      ("ws://[::1%25eth0]", "only an IPv6 address may be enclosed in \"[\" and \"]\""),
      ("ws://a[::1]", "an IPv6 address must be enclosed in brackets: [::1]"),
      ("ws://a\\b", "a host name may contain only letters, digits, dots and hyphens"),
      ("ws://a%2fb", "a host name may contain only letters, digits, dots and hyphens"),
      ("ws://::1", "an IPv6 address must be enclosed in brackets: [::1]"),
      ("ws://h:+80", "a port must be a number from 1 to 65535"),
      ("tcp://h", "the address of a byte stream needs a port: tls://example.org:8883"),
      ("tls://[::1]", "the address of a byte stream needs a port: tls://example.org:8883"),
      ("tcp://h:1/a", "the address of a byte stream ends after the port; leave out the path and the query"),
      ("tls://h:1?a", "the address of a byte stream ends after the port; leave out the path and the query"),
      (
        "ws://m\u{FC}ller.de",
        "an address must be ASCII; write other characters as %C3%BC, and in a host as xn--"
      ),
    ])
  func bad(text: String, message: String) {
    #expect { try WebAddress(text) } throws: { "\($0)" == message }
  }

  @Test(
    "a host is a name or a numeric address, and only an IPv6 address stands in brackets",
    arguments: [
      "ws://[x]", "ws://[[::1]", "ws://[1.2.3.4]", "ws://a]b", "ws://a[", "ws://a\\b", "ws://a\"b",
      "ws://a%b", "ws://.", "ws://.a", "ws://a..b",
    ])
  func badHosts(text: String) throws {
    #expect(throws: NetError.self) { try WebAddress(text) }
    for text in [
      "ws://a-b_c.example.org:1", "ws://[fe80::1]:1", "ws://[::ffff:1.2.3.4]", "ws://example.org.",
    ] {
      let address = try WebAddress(text)
      #expect(try WebAddress("ws://\(address.authority)") == address)
    }
  }

  @Test("a combining mark after a slash or an @ does not hide it")
  func marks() throws {
    #expect(throws: NetError.self) { try NetProxy.Server("ws://\u{317}a@proxy:81") }
    #expect(try NetProxy.Server("http://u:p@\u{317}q@proxy:81").credentials == "u:p@\u{317}q")
    #expect(throws: NetError.self) { try NetProxy.Server("http://u:p@\u{317}proxy:81") }
  }

  @Test("a proxy is printed as it is written, an IPv6 address in brackets")
  func proxyShown() throws {
    let proxy = try NetProxy.Server("http://u:p@[::1]:81")
    #expect(proxy.description == "[::1]:81")
    #expect(try NetProxy.Server(proxy.description).host == "::1")
  }

  @Test(
    "percent escapes in credentials have two hexadecimal digits; anything else is kept",
    arguments: [("%41%2f", "A/"), ("%-0", "%-0"), ("%+1", "%+1"), ("%4", "%4"), ("%zz", "%zz")])
  func escapes(text: String, credentials: String) throws {
    #expect(try NetProxy.Server("\(text)@p:1").credentials == credentials)
  }

  @Test("loopback is recognised by name and address, and look-alikes are not")
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

  @Test("proxies come from the environment, in either case, and not for exempt hosts")
  func proxies() throws {
    func server(_ address: String, _ variables: [String: String]) throws -> NetProxy.Server? {
      try NetProxy.server(for: WebAddress(address)) { variables[$0] }
    }
    #expect(
      try server("wss://a.b", ["https_proxy": "http://p:3128"]) == NetProxy.Server(host: "p", port: 3128))
    #expect(try server("ws://a.b", ["HTTPS_PROXY": "p:1"]) == nil)
    #expect(try server("ws://a.b", ["HTTP_PROXY": "p:1"])?.port == 1)
    #expect(try server("tls://a.b:1", ["HTTPS_PROXY": "p:1", "HTTP_PROXY": "q:2"])?.host == "p")
    #expect(try server("tcp://a.b:1", ["HTTPS_PROXY": "p:1", "HTTP_PROXY": "q:2"])?.host == "q")
    #expect(try server("wss://a.b", ["ALL_PROXY": "http://u%40x:p%3Aw@p:1"])?.credentials == "u@x:p:w")
    #expect(try server("wss://127.0.0.1", ["ALL_PROXY": "p:1"]) == nil)
    for list in ["a.b", "x, .a.b", "*", "b"] {
      #expect(try server("wss://c.a.b", ["ALL_PROXY": "p:1", "NO_PROXY": list]) == nil, "\(list)")
    }
    #expect(try server("wss://xa.b", ["ALL_PROXY": "p:1", "NO_PROXY": "a.b"]) != nil)
    #expect { try server("wss://a.b", ["ALL_PROXY": "socks5://u:secret@p:1"]) } throws: {
      "\($0)" == "invalid proxy in ALL_PROXY: a proxy address begins with http://"
    }
  }

  @Test("the descriptions of a request, a call and a proxy contain neither header, query nor password")
  func shown() throws {
    let address = try WebAddress("wss://example.org/a?key=secret")
    var request = WebSocketRequest(address)
    request.headers = [("Authorization", "secret")]
    request.proxy = .server(NetProxy.Server(host: "p", port: 1, credentials: "u:secret"))
    var call = HTTPClient.Request("POST", address)
    call.headers = request.headers
    call.body = .bytes(Array("secret".utf8))
    #expect("\(request)" == "wss://example.org:443" && "\(call)" == "POST wss://example.org:443")
    #expect(!"\(request.proxy)".contains("secret"))
  }

  @Test(
    "a certificate name matches the host, or has a star for its first label",
    arguments: [
      ("a.b.c", "a.b.c", true), ("a.b.c.", "A.B.c", true), ("a.b.c", "*.b.c", true), ("a.b.c", "*.c", false),
      ("b.c", "*.c", false), ("b.c", "*.b.c", false), (".b.c", "*.b.c", false), ("aa.b.c", "a*.b.c", false),
      ("a.b.c", "*", false), ("a.b.c", "a.b.c.d", false), ("localhost", "localhost", true),
    ])
  func names(host: String, pattern: String, fits: Bool) {
    #expect(ServerName(host).matches(pattern) == fits)
  }

  @Test(
    "a credential goes to another machine over TLS only, whichever header or query name holds it",
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
      (request.problem?.text.hasSuffix("or allow plaintext") ?? true)
        && request.problem?.text.contains("secret") != true)
    request.allowsPlainCredentials = true
    #expect(request.problem == nil)
  }

  @Test(
    "every name that is redacted in messages also requires TLS",
    arguments: [
      "token", "X-Auth-Token", "secret", "Password", "passphrase", "Authorization", "X-Signature", "sig",
      "sign",
      "pwd", "pin", "usersig", "UserSig", "appKey", "X-AppKey", "accessKey", "X-AccessKey", "PrivateKey",
      "streamKey", "api_key", "key", "cookie", "bearer", "auth", "credentials",
    ])
  func sameNames(name: String) {
    #expect(CredentialName.matches(name))
    #expect(HTTPText.isCredential(name))
  }

  @Test("an HTTP request with a credential in plain text fails before the DNS lookup")
  func callCredentials() async throws {
    var request = HTTPClient.Request("POST", try WebAddress("http://service.invalid/token"))
    request.headers = [("Authorization", "secret")]
    await #expect { _ = try await HTTPClient.shared.run(request) } throws: {
      ($0 as? NetError)?.text
        == "the header \"Authorization\" would go to service.invalid:80 in plain text; use https:, or allow plaintext"
    }
    request.allowsPlainCredentials = true
    await #expect { _ = try await HTTPClient.shared.run(request) } throws: {
      ($0 as? NetError)?.kind != .address
    }
  }
}
