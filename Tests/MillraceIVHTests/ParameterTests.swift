import MillraceCore
import MillraceGraph
import MillraceJSON
import Testing

@testable import MillraceIVH

@Suite("parameters of ivh.avatar") struct ParameterTests {
  /// Why a graph with these parameters is refused; empty: it is not.
  private func refusal(_ values: [String: JSONValue]) -> String {
    var parameters: [String: JSONValue] = [
      "type": "ivh.avatar", "key": "k", "token": "secret-token", "user": "u",
    ]
    if values["generation"] == nil && values["asset"] == nil { parameters["project"] = "p" }
    parameters.merge(values) { _, new in new }
    let node = JSONValue.object(
      parameters.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value) })
    let graph: JSONValue = ["millrace": 1, "name": "g", "nodes": ["bot": node]]
    do {
      _ = try Graph.load(text: graph.text, name: "g.json", catalogue: .ivh)
      return ""
    } catch { return "\(error)" }
  }

  @Test(
    "that do not fit are refused with what is wrong and the cure",
    arguments: [
      (["project": ""], "a session needs an avatar", "set \"project\" or \"asset\""),
      (["asset": "a", "project": "p"], "a session has one avatar", "set \"project\" or \"asset\""),
      (["generation": "stream", "project": "p"], "the stream generation has no \"project\"", "leave it out"),
      (
        ["generation": "stream", "streamMaxInterval": 2_000],
        "the stream generation has no \"streamMaxInterval\"", "leave it out"
      ),
      (["session": "s"], "the session generation has no \"session\"", "leave it out"),
      (["driver": "convertedVoice"], "only the stream generation converts a voice", "use \"originalVoice\""),
      (["start": "never"], "the session generation needs a start", "use \"firstPicture\" or \"now\""),
      (["voice": "v"], "only an asset has a choice of voices", "set \"asset\""),
      (["frame": 100], "the session generation takes packets of 160 ms", "leave it out"),
      (
        ["generation": "stream", "frame": 160], "the stream generation takes packets of 100 or 200 ms",
        "leave it out"
      ),
      (["trtcRoom": 7], "a room needs the protocol trtc", "set \"protocol\" to \"trtc\""),
      (
        ["protocol": "trtc", "trtcApp": "1"],
        "your own TRTC application needs the avatar's signature and permission key",
        "set \"trtcUserSig\" and \"trtcPrivateMapKey\""
      ),
      (["key": "a b"], "\"key\" contains a character that no appkey has", "without spaces"),
      (["url": "http://example.com"], "", "https"), (["url": "ftp://h"], "", "https"),
      (["wsUrl": "ws://example.com"], "", "wss"), (["heartBeat": 99], "", ""), (["picture": 1], "", ""),
    ] as [([String: JSONValue], String, String)])
  func refusals(values: [String: JSONValue], text: String, cure: String) {
    let refusal = refusal(values)
    #expect(!refusal.isEmpty, "\(values)")
    for part in [text, cure] where !part.isEmpty { #expect(refusal.contains(part), "\(refusal)") }
    #expect(!refusal.contains("secret-token"))
  }

  @Test(
    "that fit are accepted, and an empty text is none",
    arguments: [
      [:], ["asset": "a", "voice": "t"],
      ["generation": "stream", "project": "", "driver": "convertedVoice", "start": "never"],
      ["generation": "stream", "session": "s", "frame": 200], ["protocol": "trtc", "trtcRoom": 7],
      ["url": "http://127.0.0.1:1", "wsUrl": "ws://127.0.0.1:2/x"],
      ["driver": "originalVoice", "frame": 160],
    ] as [[String: JSONValue]])
  func accepted(values: [String: JSONValue]) {
    #expect(refusal(values) == "")
  }

  @Test("the times of the parameters are those of the session's rules")
  func times() throws {
    var values = ParameterValues()
    for parameter in IVHAvatar.contract.parameters { values[parameter.name] = parameter.defaultValue }
    values["user"] = "u"
    values["project"] = "p"
    #expect(try IVHResolution.rules(values, followsPlayback: false).close == .milliseconds(2_000))
    (values["close"], values["open"]) = (700, 800)
    let rules = try IVHResolution.rules(values, followsPlayback: false)
    #expect(rules.close == .milliseconds(700) && rules.answer == .milliseconds(800))
  }
}
