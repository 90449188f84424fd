import Testing

@testable import MillraceNet

@Suite("HTTP byte ranges") struct HTTPRangeTests {
  @Test(
    "a range is read as RFC 9110 says; what is not understood asks for the whole file",
    arguments: [
      (nil, HTTPRange.whole), ("bytes=0-0", .part(0..<1)), ("bytes=2-4", .part(2..<5)),
      ("bytes=2-", .part(2..<10)),
      ("bytes=-3", .part(7..<10)), ("bytes=-30", .part(0..<10)), ("BYTES=5-100", .part(5..<10)),
      ("bytes=10-", .unsatisfiable), ("bytes=10-20", .unsatisfiable), ("bytes=-0", .unsatisfiable),
      ("bytes=99999999999999999999-", .unsatisfiable), ("bytes=4-2", .whole), ("bytes=-", .whole),
      ("bytes=0-1,3-4", .whole), ("bytes=a-b", .whole), ("bytes=--1", .whole), ("bytes=+1-2", .whole),
      ("lines=1-2", .whole), ("bytes=0-99999999999999999999", .part(0..<10)), ("bytes", .whole), ("", .whole),
    ] as [(String?, HTTPRange)])
  func ranges(header: String?, expected: HTTPRange) {
    #expect(HTTPRange(header, of: 10) == expected)
  }

  @Test("no range of an empty file can be satisfied")
  func empty() {
    #expect(HTTPRange("bytes=0-", of: 0) == .unsatisfiable)
    #expect(HTTPRange("bytes=-1", of: 0) == .unsatisfiable)
    #expect(HTTPRange(nil, of: 0) == .whole)
  }
}
