import MillraceAudio
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@Suite("Files that refer to other files")
struct SupportedContainerTests {
  private let folder = TemporaryFolder()

  /// Files a user may supply as a recording, with FFmpeg's format name; `%` is another file, not the user's own.
  private static let kinds: [(name: String, text: String)] = [
    ("hls", "#EXTM3U\n#EXT-X-TARGETDURATION:3600\n#EXTINF:10,\nfile://%\n"),
    ("hls", "#EXTM3U\n#EXT-X-TARGETDURATION:3600\n#EXTINF:10,\nfile://%\n#EXT-X-ENDLIST\n"),
    ("concat", "ffconcat version 1.0\nfile '%'\n"),
    (
      "dash",
      "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" "
        + "mediaPresentationDuration=\"PT5S\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"><Period>"
        + "<AdaptationSet contentType=\"audio\" mimeType=\"audio/mp4\"><Representation id=\"1\" bandwidth=\"1000\">"
        + "<BaseURL>%</BaseURL></Representation></AdaptationSet></Period></MPD>"
    ),
  ]

  @Test(
    "are refused at once, whatever their name, and the other files are not opened",
    arguments: kinds, ["list.mp3", "list.wav"])
  func refused(kind: (name: String, text: String), name: String) {
    let other = folder.file("private.mp3")
    MediaFile.write(
      Fixture.sine16(440, rate: 44_100, frames: 44_100, channels: 1), codec: "libmp3lame", rate: 44_100,
      channels: 1, to: other)
    let path = folder.file(name)
    put(
      Array(kind.text.split(separator: "%", omittingEmptySubsequences: false).joined(separator: other).utf8),
      at: path)
    let problem = #expect(throws: BenchProblem.self) {
      try NodeBench(AudioRead.self, ["path": .string(path)])
    }
    #expect(
      problem?.description.contains(
        "refers to other files instead of containing media (FFmpeg: \(kind.name)), which is not supported"
      )
        == true, "\(String(describing: problem))")
  }
}
