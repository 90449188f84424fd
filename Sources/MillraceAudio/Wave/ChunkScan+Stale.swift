/// Detects whether the sizes in a header are stale: a recorder updates them from time to time, and a killed one leaves audio after
/// the end they state.
extension ChunkScan {
  /// Chunks that programs put after the audio. Their names are accepted even if the file is truncated inside them.
  private static let knownNames: Set = [
    "fmt ", "LIST", "list", "id3 ", "ID3 ", "bext", "cue ", "smpl", "inst", "fact", "iXML", "axml", "_PMX",
    "DISP", "acid", "strc", "PEAK",
    "cart", "chna", "dbmd", "levl", "minf", "elm1", "regn", "umid", "ovwf", "afsp", "plst", "note", "labl",
    "SNDM", "JUNK", "junk",
    "PAD ", "FLLR",
  ]
  /// Prefixes of MP3 tags, which some programs append to any file: ID3v1, ID3v2, APE and Lyrics3.
  private static let tagMarks = ["TAG", "ID3", "APETAGEX", "LYRICSBEGIN"]

  /// True when the data after the declared end of the audio is audio as well: the RIFF size does not cover it, and it contains
  /// neither chunks nor a tag.
  func isStale(_ data: Chunk, riffSize: Int64) throws(WAVProblem) -> Bool {
    let start = data.offset + Chunk.headSize
    guard data.declared >= 0, data.declared < end - start else { return false }
    let behind = start + data.declared
    // All ones, and 0, are placeholders that recorders write first.
    if riffSize > 0 && riffSize != 0xFFFF_FFFF {
      let outer = riffSize >= end ? Int64.max : riffSize + Chunk.headSize
      // A length of zero is accepted only if the RIFF size is right. The pad byte of an odd length may or may not count.
      guard data.declared == 0 ? outer != end : outer <= behind + (data.declared & 1) else { return false }
    }
    if data.declared & 1 == 1, end - behind == 1 { return false }
    // Some writers omit the pad byte.
    for place in behind...behind + (data.declared & 1) {
      if try isTag(at: place) { return false }
      if try holdsChunks(from: place) { return false }
    }
    return true
  }

  private func isTag(at offset: Int64) throws(WAVProblem) -> Bool {
    let head = try bytes(11, at: offset)
    return Self.tagMarks.contains { head.starts(with: $0.utf8) }
  }

  /// True when a chunk of a known name is at an offset, or chunks of any names that reach exactly to the end of the file.
  private func holdsChunks(from offset: Int64) throws(WAVProblem) -> Bool {
    var place = offset
    for _ in 0..<WAVHeader.chunkLimit {
      let head = try bytes(Int(Chunk.headSize), at: place)
      guard head.count == Int(Chunk.headSize), head[..<4].allSatisfy({ (0x20..<0x7F).contains($0) }) else {
        return false
      }
      if Self.knownNames.contains(name(head, at: 0)) { return true }
      let size = Int64(word(head, at: 4))
      guard size <= end - place - Chunk.headSize else { return false }
      place += Chunk.headSize + size + (size & 1)
      if place >= end { return true }
    }
    return true
  }
}
