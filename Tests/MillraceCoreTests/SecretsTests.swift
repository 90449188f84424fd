import MillraceCore
import Testing

@Suite("Secrets")
struct SecretsTests {
  @Test("every occurrence of a secret is redacted; of two with the same beginning, the longer one first")
  func text() {
    let secrets = Secrets(["hunter", "hunter2", "/hidden/place.wav"])
    #expect(secrets.redacting("hunter2hunter, hunters") == "••••••, hunters")
    #expect(secrets.redacting("cannot write \"/hidden/place.wav\"") == "cannot write \"•••\"")
    #expect(secrets.redacting("nothing here") == "nothing here")
    #expect(Secrets().redacting("hunter2") == "hunter2")
  }

  @Test(
    "a short secret is redacted only where it stands alone",
    arguments: [
      ("en", "enc speaks en.", "enc speaks •••."),
      ("1", "1 of 10, 0.1, 1.5 or 1", "••• of 10, 0.1, 1.5 or •••"),
      ("é1", "é1 éé1 é1x", "••• éé1 é1x"), ("-1", "-1 was refused", "••• was refused"),
    ])
  func short(secret: String, text: String, expected: String) {
    #expect(Secrets([secret]).redacting(text) == expected)
  }

  @Test("JSON remains JSON: escapes are recognised, no secret starts inside one, numbers become texts")
  func json() {
    let secrets = Secrets(["a\"b\\c\n", "471147", "u0041", "schön"])
    #expect(
      secrets.redacting(json: #"{"x":"a\"b\\c\n","y":"a\"b\\c\u000a","z":"sch\u00f6n"}"#)
        == #"{"x":"•••","y":"•••","z":"•••"}"#)
    #expect(secrets.redacting(json: #"{"x":"\\u0041","y":"\u0041"}"#) == #"{"x":"\\•••","y":"\u0041"}"#)
    #expect(
      secrets.redacting(json: #"{"pin":471147,"other":1471147,"more":0.471147,"text":"pin 471147"}"#)
        == #"{"pin":"•••","other":1471147,"more":0.471147,"text":"pin •••"}"#)
  }

  @Test("short numbers, true, false and null do not change in JSON")
  func plain() {
    let secrets = Secrets(["1", "true", "null", ""])
    #expect(
      secrets.redacting(json: #"{"channel":1,"on":true,"of":null,"text":"1 true"}"#)
        == #"{"channel":1,"on":true,"of":null,"text":"••• true"}"#)
    #expect(Secrets(["true", "false", "null", ""]).isEmpty)
  }

  @Test("invalid JSON is redacted too")
  func broken() {
    #expect(Secrets(["sesame"]).redacting(json: "token=sesame \"open") == "token=\"•••\" \"open")
  }

  @Test("a text of backslashes is scanned once, not once from each backslash", .timeLimit(.minutes(30)))
  func backslashes() {
    let secrets = Secrets(["a\\b/c", "sesame-open"])
    let text = String(repeating: "\\", count: 1 << 18)
    #expect(secrets.redacting(text) == text)
    #expect(secrets.redacting(json: "{\"x\":\"\(text)\"}") == "{\"x\":\"\(text)\"}")
    // Four nested JSON strings.
    let nested = String(repeating: "\\", count: 15)
    #expect(secrets.redacting("x \(nested)\"sesame-open") == "x \(nested)\"•••")
    #expect(Secrets(["one/two"]).redacting("one\(nested)/two") == "•••")
  }

  @Test("a secret that is added again is redacted, however many were added in between")
  func again() {
    let secrets = Secrets()
    secrets.add(["first-of-all"])
    for number in 0..<400 { secrets.add(["key-number-\(number)"]) }
    secrets.add(["first-of-all"])
    #expect(
      secrets.redacting("first-of-all key-number-399 key-number-300") == "••• ••• •••")
  }

  @Test("a proxy or an address that is a long word is treated as a key in the wrong place")
  func words() {
    #expect(ParameterContract.Secrecy.address.hiddenTexts(of: "environment").isEmpty)
    #expect(ParameterContract.Secrecy.address.hiddenTexts(of: "none").isEmpty)
    #expect(
      ParameterContract.Secrecy.address.hiddenTexts(of: "correcthorsebattery") == ["correcthorsebattery"])
  }

  @Test("no text grows more than the documented factor")
  func growth() {
    for (text, form) in [("1 1 1 1", Secrets.Form.text), ("\"1\",1111,\"1 1\"", .json)] {
      var count = 0
      Secrets(["1", "1111"]).redact(Array(text.utf8).span, form) { _ in count += 1 }
      #expect(count <= text.utf8.count * Secrets.growth)
    }
  }
}
