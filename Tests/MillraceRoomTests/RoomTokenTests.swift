import MillraceCrypto
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: tokens") struct RoomTokenTests {
  private static let key = HubRig.key
  private static let end = Int64(HubRig.start) * 1_000
  /// Documentation/room.md, section "Tokens".
  private static let text =
    "eyJ1c2VyIjoiYW5uIiwicm9vbSI6InIxIiwiZXhwIjoxNzAwMDAwMDAwfQ.qhRlYsKJCA6xoX3tVGZ0rZqTF0lW1Tw3y0mAptNuKB0"

  private static func error(_ text: String, at unix: Int64 = Self.end - 1) -> RoomError? {
    do throws(RoomError) {
      _ = try RoomToken(text, key: key, unixMilliseconds: unix)
      return nil
    } catch { return error }
  }

  /// Any claims, signed as they are.
  private static func signed(_ json: String) -> String {
    let claims = Base64URL.encode(Array(json.utf8))
    let message = Array(claims.utf8)
    return "\(claims).\(Base64URL.encode(HMAC.sha256(message.span, key: key)))"
  }

  @Test("the token of the documentation is written and read byte for byte")
  func vector() throws {
    let token = RoomToken(named("ann"), room: named("r1"), expiry: HubRig.start)
    #expect(token.signed(with: Self.key) == Self.text)
    #expect(try RoomToken(Self.text, key: Self.key, unixMilliseconds: Self.end - 1) == token)
  }

  @Test("every claim is read as it was written")
  func claims() throws {
    let token = RoomToken(
      named("bob"), room: named("r-2_x"), role: .viewer, rights: [.close, .kick],
      expiry: RoomToken.lastExpiry, once: "é\u{0}\"")
    #expect(try RoomToken(token.signed(with: Self.key), key: Self.key, unixMilliseconds: 0) == token)
    let none = RoomToken(named("bob"), rights: [], expiry: HubRig.start)
    #expect(try RoomToken(none.signed(with: Self.key), key: Self.key, unixMilliseconds: 0) == none)
  }

  @Test("a token is over at its last second, and not before")
  func expiry() {
    #expect(Self.error(Self.text, at: Self.end - 1) == nil)
    #expect(Self.error(Self.text, at: Self.end)?.name == .tokenExpired)
    #expect(Self.error(Self.text, at: .max)?.name == .tokenExpired)
  }

  @Test("a token that is cut or changed at any place is refused")
  func forged() {
    for count in 0..<Self.text.count {
      #expect(Self.error(String(Self.text.prefix(count)))?.name == .badToken)
    }
    for index in Self.text.indices {
      for character in ["A", "B", "=", ".", "+", " ", "\u{0}", "é"]
      where character != String(Self.text[index]) {
        let changed = "\(Self.text[..<index])\(character)\(Self.text[Self.text.index(after: index)...])"
        #expect(Self.error(changed)?.name == .badToken)
      }
    }
  }

  @Test(
    "what is no token is refused",
    arguments: [
      "", ".", "..", "a.b", text + "=", " " + text, text + "\n", text + "." + text, "." + text,
      String(repeating: "A", count: 4_097), String(repeating: ".", count: 4_096),
    ])
  func nonsense(text: String) { #expect(Self.error(text)?.name == .badToken) }

  @Test("a token that another key has signed is refused, and the text says nothing of it")
  func otherKey() {
    let token = RoomToken(named("ann"), expiry: HubRig.start).signed(with: SecretKey(utf8: "other-key"))
    #expect(
      Self.error(token)
        == RoomError(.badToken, "the token is not valid here; get one that is signed with the hub's key"))
  }

  @Test(
    "signed claims of a wrong form are refused in words",
    arguments: [
      ("{}", "its \"user\" must be a string"),
      ("[1]", "its \"user\" must be a string"),
      (#"{"user":1,"exp":1}"#, "its \"user\" must be a string"),
      (#"{"user":"a b","exp":1}"#, "its \"user\" must be a name"),
      (#"{"user":"ann"}"#, "its \"exp\" must be an integer"),
      (#"{"user":"ann","exp":"1"}"#, "its \"exp\" must be an integer"),
      (#"{"user":"ann","exp":1.5}"#, "its \"exp\" must be an integer"),
      (#"{"user":"ann","exp":-1}"#, "its \"exp\" must be from 0 to 253402300799"),
      (#"{"user":"ann","exp":9223372036854775807}"#, "its \"exp\" must be from 0 to 253402300799"),
      (#"{"user":"ann","room":"","exp":1}"#, "its \"room\" must be a name"),
      (#"{"user":"ann","role":"king","exp":1}"#, "its \"role\" must be one of host, viewer"),
      (#"{"user":"ann","rights":"kick","exp":1}"#, "its \"rights\" must be an array"),
      (#"{"user":"ann","rights":["fly"],"exp":1}"#, "its \"rights[0]\" must be publish, kick or close"),
      (#"{"user":"ann","exp":1,"once":""}"#, "its \"once\" must have 1 to 64 characters"),
      (#"{"user":"ann""#, "holds invalid JSON at byte 13: expected \",\" or \"}\" in an object"),
    ])
  func form(json: String, text: String) {
    let prefix = "the token is signed, but "
    #expect(Self.error(Self.signed(json)) == RoomError(.badToken, prefix + text))
  }

  @Test("a value that lets in once has 64 characters at most")
  func longOnce() {
    let text = #"{"user":"ann","exp":253402300799,"once":""#
    #expect(Self.error(Self.signed(text + String(repeating: "é", count: 64) + "\"}")) == nil)
    #expect(Self.error(Self.signed(text + String(repeating: "é", count: 65) + "\"}"))?.name == .badToken)
  }

  @Test("unknown claims are ignored")
  func unknown() {
    #expect(Self.error(Self.signed(#"{"user":"ann","exp":1700000000,"iat":[],"x":{"y":null}}"#)) == nil)
  }
}
