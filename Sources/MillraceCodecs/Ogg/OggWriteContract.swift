public import MillraceCore
internal import MillraceFiles

extension OggWrite {
  public static var contract: NodeContract {
    NodeContract(
      "ogg.write", "writes Opus packets to an Ogg Opus file",
      text: """
        The file is playable up to its last page at any time, even if the process is killed. Untransmitted silence and gaps keep \
        their length, and the end is sample-accurate.
        """,
      inputs: [
        PortContract(
          "in", .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2)), text: "Opus packets", holds: 1)
      ],
      parameters: [
        ParameterContract(
          "path", .path, required: true,
          text: "the file, pipe or device to write; an existing file is replaced"),
        ParameterContract(
          "page", .integer(20...10_000), unit: "ms", default: 200,
          text:
            "length of a page, and the most that is lost if the process is killed; each page adds about 30 bytes"
        ),
        ParameterContract(
          "tags", .list(of: .string, count: 0...64), default: [],
          text: "comment tags for the file, each NAME=value"),
      ],
      events: [
        EventContract(
          "written",
          text: "the file is complete: bytes, packets, pages, seconds of audio, seconds of filled gaps")
      ],
      lane: .bulk,
      examples: [
        #"{ "type": "ogg.write", "path": "uplink.opus" }"#,
        #"{ "type": "ogg.write", "path": "call.opus", "page": 1000, "tags": ["TITLE=test call"] }"#,
      ],
      resolve: resolve)
  }

  private static func resolve(_ resolution: inout Resolution) {
    for tag in resolution.parameters.strings("tags") where !isTag(tag) {
      resolution.refuse(
        "tags", "\"\(tag)\" is not a tag",
        cure: "write it as NAME=value, with a name of ASCII letters, digits and spaces")
    }
    do throws(NodeProblem) { try FileCheck.writing(resolution.parameters.string("path")) } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
  }

  /// Field names are printable ASCII without `=` (the Vorbis comment rules that RFC 7845 section 5.2 refers to).
  private static func isTag(_ text: String) -> Bool {
    guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")), equals > text.utf8.startIndex else {
      return false
    }
    return text.utf8[..<equals].allSatisfy { (0x20...0x7D).contains($0) }
  }
}
