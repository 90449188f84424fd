import MillraceCore
import Testing

/// What of a value is secret, and how a secret is found in what is said.
@Suite("Secrecy")
struct SecrecyTests {
  private typealias Secrecy = ParameterContract.Secrecy

  private func parameter(_ secrecy: ParameterContract.Secrecy) -> ParameterContract {
    ParameterContract("p", .string, default: "standard", secret: secrecy, text: "a parameter")
  }

  @Test(
    "what of a value is shown, and what is not",
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
    // Of a few letters in front of a slash nothing is asked here.
    let found = parameter.hiddenTexts(of: .string(value)).filter { !$0.hasPrefix("//") }
    #expect(found.isSuperset(of: hidden.filter { $0.utf8.count > 2 }), "\(found)")
    #expect(found.allSatisfy { hidden.contains($0) }, "\(found)")
    #expect(parameter.shown(.list([.string(value)])) == .list([.string(shown)]) || value == "standard")
  }

  private static let secret = #"k/e"y+é\ 47=="#

  @Test(
    "a secret is found however it is spelt",
    arguments: [
      #"k/e"y+é\ 47=="#, #"k\/e\"y+é\\ 47=="#, #"k/e\u0022y\u002B\u00E9\u005c 47=="#,
      "k%2Fe%22y%2b%C3%A9%5C+47%3d%3D",
      #"k\\/e\"y+é\\ 47=="#,
    ])
  func spellings(text: String) {
    let secrets = Secrets([Self.secret])
    #expect(secrets.removed(from: "<\(text)>") == "<•••>")
  }

  @Test("a secret is taken out of JSON, also of JSON in a string, and the text stays JSON")
  func json() {
    let secrets = Secrets([Self.secret, "a/b-cdefgh"])
    #expect(secrets.removed(fromJSON: #"{"a":"k\/e\"y+é\\ 47==","b":1}"#) == #"{"a":"•••","b":1}"#)
    #expect(secrets.removed(fromJSON: #"{"a":"{\"b\":\"a\\/b-cdefgh\"}"}"#) == #"{"a":"{\"b\":\"•••\"}"}"#)
    #expect(
      secrets.removed(fromJSON: #"{"a":"\ud83d\ude00 a/b-cdefgh\\"}"#) == #"{"a":"\ud83d\ude00 •••\\"}"#)
    #expect(Secrets(["x😀y-47"]).removed(fromJSON: #"{"a":"x\ud83d\ude00y-47"}"#) == #"{"a":"•••"}"#)
  }

  @Test(
    "Base64 of a secret is found, also in the midst of something that was encoded with it",
    arguments: [
      ("b3Blbi1zZXNhbWUtNDcxMQ==", "•••"), ("dTpvcGVuLXNlc2FtZS00NzEx", "dTp•••"),
      ("dXU6b3Blbi1zZXNhbWUtNDcxMQ==", "dXU6•••"),
      ("YW5uYTpvcGVuLXNlc2FtZS00NzExIQ==", "YW5uYTp•••"),
    ])
  func base64(text: String, expected: String) {
    #expect(Secrets(["open-sesame-4711"]).removed(from: "Basic \(text).") == "Basic \(expected).")
  }

  @Test(
    "what is left of a secret where a text was cut is not shown",
    arguments: [
      ("refused: open-ses", "refused: •••"), ("sesame-4711 is wrong", "••• is wrong"),
      ("…ame-4711-x", "…•••-x"), ("…me-4711-x", "…me-4711-x"),
      ("said \"open-sesa…\"", "said \"•••…\""), ("said open-sesa... and", "said •••... and"),
      ("open-sesbm", "open-sesbm"),
      ("an open-air", "an open-air"), ("open", "open"), ("sesame", "sesame"),
    ])
  func remainders(text: String, expected: String) {
    #expect(Secrets(["open-sesame-4711"]).removed(from: text) == expected)
  }

  @Test("a remainder that is a plain word is left alone")
  func words() {
    let secrets = Secrets(["k-connection", "transcript-4711"])
    #expect(secrets.removed(from: "connection refused") == "connection refused")
    #expect(
      secrets.removed(fromJSON: #"{"event":"transcript","text":"transcript-4"}"#)
        == #"{"event":"transcript","text":"•••"}"#)
  }

  @Test("a short word is taken out only where it stands alone, and what is no word everywhere")
  func short() {
    #expect(Secrets(["info"]).removed(from: "info: information, info_2") == "•••: information, info_2")
    #expect(Secrets(["inf0"]).removed(from: "xinf0rm") == "x•••rm")
    #expect(Secrets(["connected"]).removed(from: "disconnected") == "dis•••")
  }

  @Test("what is added is known to all copies, and counts from then on")
  func added() {
    let secrets = Secrets(["first-1"])
    let copy = secrets
    #expect(Secrets().isEmpty && copy.removed(from: "second-2") == "second-2")
    for _ in 0..<3 { secrets.add(["second-2", "", "true"]) }
    secrets.add(["third-3"])
    #expect(copy.removed(from: "first-1 second-2 third-3 true") == "••• ••• ••• true")
    let empty = Secrets()
    empty.add(["alone-1"])
    #expect(!empty.isEmpty && empty.removed(from: "alone-1") == "•••")
  }

  @Test(
    "a message to a node holds credentials under their names",
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

  @Test("names of credentials are known as people write them")
  func names() {
    for name in [
      "key", "apiKey", "X-Auth-Token", "api_key", "Authorization", "PASSWORD", "client_secret", "Set-Cookie",
    ] {
      #expect(CredentialName.isOne(name), "\(name)")
    }
    for name in ["keyInterval", "rate", "author", "format", "text"] {
      #expect(!CredentialName.isOne(name), "\(name)")
    }
  }
}
