import MillraceCore
import Testing

/// Which parts of a value are secret, and how a secret is found in text.
@Suite("Secrecy")
struct SecrecyTests {
  private typealias Secrecy = ParameterContract.Secrecy

  private func parameter(_ secrecy: ParameterContract.Secrecy) -> ParameterContract {
    ParameterContract("p", .string, default: "standard", secret: secrecy, text: "a parameter")
  }

  @Test(
    "the secret parts of a value are hidden, the others are shown",
    arguments: [
      (Secrecy.whole, "sk-abcd", "•••", ["sk-abcd"]), (.none, "sk-abcd", "sk-abcd", []),
      (.whole, "standard", "standard", []), (.whole, "", "", [""]),
      (.address, "wss://h.example:1/a/b", "wss://h.example:1/a/b", []),
      (
        .address, "https://anna:p%40ss@h/x?k=abcdef&v=1&flag#frag", "https://•••@h/x?k=•••&v=•••&•••#•••",
        ["anna:p%40ss", "anna:p@ss", "anna", "p%40ss", "p@ss", "abcdef", "v=1", "flag", "frag"]
      ),
      (.address, "http://u:a/b@h", "http://•••", ["u:a/b@h"]),
      (
        .address, "http://u:hunter?2@proxy", "http://•••", ["u:hunter?2@proxy", "hunter", "proxy"]
      ),
      (.address, "ws://[::1]:80/?m=a@b.c", "ws://[::1]:80/?m=•••", ["a@b.c"]),
      (.address, "none", "none", []), (.address, "sk-abcd", "•••", ["sk-abcd"]),
      (
        .address, "rtmp://h/live/key-1234?a=secret-2", "rtmp://h/live/•••",
        ["key-1234?a=secret-2", "key-1234", "live/a", "secret-2"]
      ),
      (.address, "rtmp://h/live/stream", "rtmp://h/live/•••", ["live/stream"]),
      (.assigned, "NAME=hunter2", "NAME=•••", ["hunter2"]), (.assigned, "DEBUG=1", "DEBUG=•••", ["DEBUG=1"]),
      (
        .assigned, "Authorization: Bearer sk-abcd", "Authorization: •••", ["Bearer sk-abcd", "sk-abcd"]
      ),
      (
        .assigned, "Cookie: a=first1; b=\"second\"", "Cookie: •••",
        ["a=first1; b=\"second\"", "first1", "second"]
      ),
      (.assigned, "sk-abcd", "•••", ["sk-abcd"]),
      (
        .assigned, #"{"A":"first1","B":[4711,"x\/y\u00e9z"],"C":true}"#,
        #"{"A":"•••","B":["•••","•••"],"C":true}"#,
        ["first1", "4711", "x/yéz"]
      ),
      (
        .credentials, #"{"city":"Bonn","userToken":"tok-1","tokens":{"a":"tok-2"},"limit_key":"k"}"#,
        #"{"city":"Bonn","userToken":"•••","tokens":{"a":"•••"},"limit_key":"•••"}"#,
        ["tok-1", "tok-2", "limit_key\":\"k"]
      ),
      (.credentials, "city=Bonn", "city=Bonn", []),
      (.credentials, "api_key=abcdef", "api_key=•••", ["abcdef"]),
    ])
  private func parts(_ secrecy: Secrecy, _ value: String, _ shown: String, _ hidden: [String]) {
    let parameter = parameter(secrecy)
    #expect(parameter.shown(.string(value)) == .string(shown))
    // Texts with a leading double slash are not tested here.
    let found = parameter.hiddenTexts(of: .string(value)).filter { !$0.hasPrefix("//") }
    #expect(found.isSuperset(of: hidden.filter { $0.utf8.count > 2 }), "\(found)")
    #expect(found.allSatisfy { hidden.contains($0) }, "\(found)")
    #expect(parameter.shown(.list([.string(value)])) == .list([.string(shown)]) || value == "standard")
  }

  private static let secret = #"k/e"y+é\ 47=="#

  @Test(
    "a secret is found in every spelling",
    arguments: [
      #"k/e"y+é\ 47=="#, #"k\/e\"y+é\\ 47=="#, #"k/e\u0022y\u002B\u00E9\u005c 47=="#,
      "k%2Fe%22y%2b%C3%A9%5C+47%3d%3D",
      #"k\\/e\"y+é\\ 47=="#,
    ])
  func spellings(text: String) {
    let secrets = Secrets([Self.secret])
    #expect(secrets.redacting("<\(text)>") == "<•••>")
  }

  @Test("a secret is redacted in JSON, also in JSON in a string, and the text remains JSON")
  func json() {
    let secrets = Secrets([Self.secret, "a/b-cdefgh"])
    #expect(secrets.redacting(json: #"{"a":"k\/e\"y+é\\ 47==","b":1}"#) == #"{"a":"•••","b":1}"#)
    #expect(secrets.redacting(json: #"{"a":"{\"b\":\"a\\/b-cdefgh\"}"}"#) == #"{"a":"{\"b\":\"•••\"}"}"#)
    #expect(
      secrets.redacting(json: #"{"a":"\ud83d\ude00 a/b-cdefgh\\"}"#) == #"{"a":"\ud83d\ude00 •••\\"}"#)
    #expect(Secrets(["x😀y-47"]).redacting(json: #"{"a":"x\ud83d\ude00y-47"}"#) == #"{"a":"•••"}"#)
  }

  @Test(
    "a secret is found in Base64, also in the middle of the encoded text",
    arguments: [
      ("b3Blbi1zZXNhbWUtNDcxMQ==", "•••"), ("dTpvcGVuLXNlc2FtZS00NzEx", "dTp•••"),
      ("dXU6b3Blbi1zZXNhbWUtNDcxMQ==", "dXU6•••"),
      ("YW5uYTpvcGVuLXNlc2FtZS00NzExIQ==", "YW5uYTp•••"),
    ])
  func base64(text: String, expected: String) {
    #expect(Secrets(["open-sesame-4711"]).redacting("Basic \(text).") == "Basic \(expected).")
  }

  @Test(
    "a fragment of a secret in a truncated text is redacted",
    arguments: [
      ("refused: open-ses", "refused: •••"), ("sesame-4711 is wrong", "••• is wrong"),
      ("…ame-4711-x", "…•••-x"), ("…me-4711-x", "…me-4711-x"),
      ("said \"open-sesa…\"", "said \"•••…\""), ("said open-sesa... and", "said •••... and"),
      ("open-sesbm", "open-sesbm"),
      ("an open-air", "an open-air"), ("open", "open"), ("sesame", "sesame"),
    ])
  func remainders(text: String, expected: String) {
    #expect(Secrets(["open-sesame-4711"]).redacting(text) == expected)
  }

  @Test("a fragment that is an ordinary word is not redacted")
  func words() {
    let secrets = Secrets(["k-connection", "transcript-4711"])
    #expect(secrets.redacting("connection refused") == "connection refused")
    #expect(
      secrets.redacting(json: #"{"event":"transcript","text":"transcript-4"}"#)
        == #"{"event":"transcript","text":"•••"}"#)
  }

  @Test("a short word is redacted only where it stands alone, other secrets everywhere")
  func short() {
    #expect(Secrets(["info"]).redacting("info: information, info_2") == "•••: information, info_2")
    #expect(Secrets(["inf0"]).redacting("xinf0rm") == "x•••rm")
    #expect(Secrets(["connected"]).redacting("disconnected") == "dis•••")
  }

  @Test("all copies redact a secret from the moment it is added")
  func added() {
    let secrets = Secrets(["first-1"])
    let copy = secrets
    #expect(Secrets().isEmpty && copy.redacting("second-2") == "second-2")
    for _ in 0..<3 { secrets.add(["second-2", "", "true"]) }
    secrets.add(["third-3"])
    #expect(copy.redacting("first-1 second-2 third-3 true") == "••• ••• ••• true")
    let empty = Secrets()
    empty.add(["alone-1"])
    #expect(!empty.isEmpty && empty.redacting("alone-1") == "•••")
  }

  @Test(
    "credentials in a message to a node are found by their names",
    arguments: [
      (#"{"command":"refreshAuth","token":"tok-4711"}"#, ["tok-4711"]),
      (
        #"{"command":"update","values":{"auth":{"a":"tok-1","b":["tok-2"]},"max_tokens":4096}}"#,
        ["tok-1", "tok-2"]
      ),
      (#"{"command":"extra","name":"set","payload":{"key":"volume","value":3}}"#, []),
      (#"{"command":"ask","text":"what is the token?"}"#, []), ("say token=abcdef", []),
    ])
  func messages(text: String, expected: [String]) {
    #expect(Secrets.credentials(inMessage: text) == Set(expected))
  }

  @Test("names of credentials are recognised in all common spellings")
  func names() {
    for name in [
      "key", "apiKey", "X-Auth-Token", "api_key", "Authorization", "PASSWORD", "client_secret", "Set-Cookie",
    ] {
      #expect(CredentialName.matches(name), "\(name)")
    }
    for name in ["keyInterval", "rate", "author", "format", "text"] {
      #expect(!CredentialName.matches(name), "\(name)")
    }
  }
}
