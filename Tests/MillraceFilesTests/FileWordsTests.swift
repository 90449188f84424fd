import Glibc
import MillraceFiles
import Testing

@Suite("What the system says against a file, in words") struct FileWordsTests {
  @Test(
    "a file that cannot be opened is refused with the reason and the cure",
    arguments: [
      (
        ENOENT, FileUse.reading,
        "there is no file \"a/b\"; check the path; a relative one starts at the graph file's folder, with --set at the current one"
      ),
      (ENOENT, .writing, "the folder \"a\" of \"a/b\" does not exist; make it: mkdir -p \"a\""),
      (ENOTDIR, .appending, "the folder \"a\" of \"a/b\" does not exist; make it: mkdir -p \"a\""),
      (EISDIR, .reading, "\"a/b\" is a folder; name a file in it"),
      (
        EACCES, .reading,
        "\"a/b\" may not be read: Permission denied (errno 13); give this user the right to read it"
      ),
      (
        EROFS, .writing,
        "\"a/b\" may not be written: Read-only file system (errno 30); give this user the right to write there, or name another place"
      ),
      (
        EMFILE, .appending,
        "\"a/b\" cannot be written: Too many open files (errno 24); raise the limit of open files (ulimit -n), or run fewer instances"
      ),
      (ENXIO, .writing, "nobody reads the pipe \"a/b\"; start its reader first"),
      (
        ENOSPC, .writing,
        "\"a/b\" cannot be written: No space left on device (errno 28); make room on the disk, or name another place"
      ),
      (EIO, .reading, "\"a/b\" cannot be read: Input/output error (errno 5); name another file"),
    ])
  func opening(code: Int32, use: FileUse, words: String) {
    let problem = FileWords.problem(code, "a/b", for: use)
    #expect(problem.description == words)
    #expect(problem.parameter == "path")
  }

  @Test("an empty path is told as such, whatever the system says of it")
  func noPath() {
    #expect(FileWords.problem(ENOENT, "", for: .reading).description == "the path is empty; name a file")
  }

  @Test(
    "a folder that is there and takes no files is not called missing, be it given by name, the current one, or the root",
    arguments: [("/proc/b.wav", "/proc"), ("b", "."), ("/b", "/")])
  func refusingFolders(path: String, folder: String) {
    #expect(
      FileWords.problem(ENOENT, path, for: .writing).description
        == "\"\(path)\" cannot be made, though its folder \"\(folder)\" is there: No such file or directory (errno 2); "
        + "that folder takes no new files, as those of /proc do not; name another place")
  }

  @Test("a link that leads nowhere is told as such, and not as a missing folder")
  func danglingLink() throws {
    let scratch = Scratch()
    try #require(symlink(scratch.path("none/b"), scratch.path("link")) == 0)
    #expect(
      FileWords.problem(ENOENT, scratch.path("link"), for: .writing).description
        == "\"\(scratch.path("link"))\" is a link to a place that does not exist; make that place, or remove the link"
    )
  }

  @Test(
    "a write that fails says what is safe, and the cure where there is one",
    arguments: [
      (ENOSPC, "No space left on device (errno 28); the rest is whole; make room on the disk"),
      (
        EDQUOT, "Disk quota exceeded (errno 122); the rest is whole; this user's share of the disk is used up"
      ),
      (EFBIG, "File too large (errno 27); the rest is whole; no longer file is allowed there"),
      (
        EPIPE,
        "Broken pipe (errno 32); the rest is whole; keep the program that reads it running as long as the graph"
      ),
      (
        ENOENT,
        "No such file or directory (errno 2); the rest is whole; its folder was removed or takes no new files: name another place"
      ),
      (EIO, "Input/output error (errno 5); the rest is whole"),
    ])
  func writing(code: Int32, words: String) {
    #expect(
      FileWords.writeFailure(code, "\"a\"", kept: "the rest is whole") == "writing \"a\" failed: " + words)
  }
}
