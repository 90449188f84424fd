import MillraceCore
import Testing

@Suite("Secrets")
struct SecretsTests {
  @Test("every occurrence of a secret is taken out of a text, the longest of two that begin alike first")
  func text() {
    let secrets = Secrets(["hunter", "hunter2", "/hidden/place.wav"])
    #expect(secrets.removed(from: "hunter2hunter, hunters") == "••••••, hunters")
    #expect(secrets.removed(from: "cannot write \"/hidden/place.wav\"") == "cannot write \"•••\"")
    #expect(secrets.removed(from: "nothing here") == "nothing here")
    #expect(Secrets().removed(from: "hunter2") == "hunter2")
  }

  @Test(
    "a short secret goes only where it stands alone",
    arguments: [
      ("en", "enc speaks en.", "enc speaks •••."),
      ("1", "1 of 10, 0.1, 1.5 or 1", "••• of 10, 0.1, 1.5 or •••"),
      ("é1", "é1 éé1 é1x", "••• éé1 é1x"), ("-1", "-1 was refused", "••• was refused"),
    ])
  func short(secret: String, text: String, expected: String) {
    #expect(Secrets([secret]).removed(from: text) == expected)
  }

  @Test("JSON stays JSON: escapes are known, nothing begins inside one, numbers become texts")
  func json() {
    let secrets = Secrets(["a\"b\\c\n", "471147", "u0041", "schön"])
    #expect(
      secrets.removed(fromJSON: #"{"x":"a\"b\\c\n","y":"a\"b\\c\u000a","z":"sch\u00f6n"}"#)
        == #"{"x":"•••","y":"•••","z":"•••"}"#)
    #expect(secrets.removed(fromJSON: #"{"x":"\\u0041","y":"\u0041"}"#) == #"{"x":"\\•••","y":"\u0041"}"#)
    #expect(
      secrets.removed(fromJSON: #"{"pin":471147,"other":1471147,"more":0.471147,"text":"pin 471147"}"#)
        == #"{"pin":"•••","other":1471147,"more":0.471147,"text":"pin •••"}"#)
  }

  @Test("short numbers, true, false and null stay what they are in JSON")
  func plain() {
    let secrets = Secrets(["1", "true", "null", ""])
    #expect(
      secrets.removed(fromJSON: #"{"channel":1,"on":true,"of":null,"text":"1 true"}"#)
        == #"{"channel":1,"on":true,"of":null,"text":"••• true"}"#)
    #expect(Secrets(["true", "false", "null", ""]).isEmpty)
  }

  @Test("what was meant to be JSON and is not betrays nothing either")
  func broken() {
    #expect(Secrets(["sesame"]).removed(fromJSON: "token=sesame \"open") == "token=\"•••\" \"open")
  }

  @Test("a text of backslashes is gone through once, not once from each of them", .timeLimit(.minutes(30)))
  func backslashes() {
    let secrets = Secrets(["a\\b/c", "sesame-open"])
    let text = String(repeating: "\\", count: 1 << 18)
    #expect(secrets.removed(from: text) == text)
    #expect(secrets.removed(fromJSON: "{\"x\":\"\(text)\"}") == "{\"x\":\"\(text)\"}")
    // Four strings of JSON, one inside the other.
    let nested = String(repeating: "\\", count: 15)
    #expect(secrets.removed(from: "x \(nested)\"sesame-open") == "x \(nested)\"•••")
    #expect(Secrets(["one/two"]).removed(from: "one\(nested)/two") == "•••")
  }

  @Test("a secret that is given again is hidden, however many came in between")
  func again() {
    let secrets = Secrets()
    secrets.add(["first-of-all"])
    for number in 0..<400 { secrets.add(["key-number-\(number)"]) }
    secrets.add(["first-of-all"])
    #expect(
      secrets.removed(from: "first-of-all key-number-399 key-number-300") == "••• ••• •••")
  }

  @Test("a proxy or an address that is one long word is taken for a key in the wrong place")
  func words() {
    #expect(ParameterContract.Secrecy.address.hiddenTexts(of: "environment").isEmpty)
    #expect(ParameterContract.Secrecy.address.hiddenTexts(of: "none").isEmpty)
    #expect(
      ParameterContract.Secrecy.address.hiddenTexts(of: "correcthorsebattery") == ["correcthorsebattery"])
  }

  @Test("no text grows more than is said")
  func growth() {
    for (text, form) in [("1 1 1 1", Secrets.Form.text), ("\"1\",1111,\"1 1\"", .json)] {
      var count = 0
      Secrets(["1", "1111"]).hide(in: Array(text.utf8).span, form) { _ in count += 1 }
      #expect(count <= text.utf8.count * Secrets.growth)
    }
  }
}
