/// Recognises a file's format by its first bytes, for error messages.
package enum FileKind {
  private static let marks: [(mark: [UInt8], place: Int, name: String)] = [
    (Array("RIFF".utf8), 0, "a WAV file"), (Array("OggS".utf8), 0, "an Ogg file"),
    (Array("fLaC".utf8), 0, "a FLAC file"), (Array("ftyp".utf8), 4, "an MP4 file"),
    (Array("FLV".utf8), 0, "an FLV file"), ([0x1A, 0x45, 0xDF, 0xA3], 0, "a Matroska file"),
    (Array("ID3".utf8), 0, "an ID3 tag"), ([0x1F, 0x8B], 0, "a gzip file"),
    (Array("PK".utf8), 0, "a zip file"),
  ]
  /// Leading bytes that must be printable for a file to count as text.
  private static let textBytes = 16

  /// `a WAV file`, `text`; nil when the first bytes match nothing known.
  package static func name(_ bytes: [UInt8]) -> String? {
    for (mark, place, name) in marks where bytes.count >= place + mark.count {
      if Array(bytes[place..<place + mark.count]) == mark { return name }
    }
    let head = bytes.prefix(textBytes)
    let isText = head.allSatisfy { (0x20..<0x7F).contains($0) || (0x09...0x0D).contains($0) }
    return isText && head.count == textBytes ? "text" : nil
  }
}
