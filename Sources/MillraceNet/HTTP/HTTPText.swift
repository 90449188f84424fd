/// What may stand in a request, RFC 9110 section 5.
enum HTTPText {
  /// True for a word: the name of a header, a method, a sub-protocol.
  static func isToken(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// What is wrong with a header, without its value; nil: nothing. A line break in it would be the beginning of another one.
  static func problem(_ name: String, _ value: String) -> NetProblem? {
    guard !(name + value).utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) else {
      return NetProblem(.address, "a header holds a line break")
    }
    guard isToken(name) else {
      return NetProblem(.address, "the name of a header is empty or holds a space or something like it")
    }
    return nil
  }
}
