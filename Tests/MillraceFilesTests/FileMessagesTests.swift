import Glibc
import MillraceFiles
import Testing

@Suite("Error messages for files") struct FileMessagesTests {
  @Test(
    "a file that cannot be opened has a message with reason and cure",
    arguments: [
      (
        ENOENT, FileUse.reading,
        "there is no file \"a/b\"; check the path: in a graph it is relative to the graph file, with --set to the current directory"
      ),
      (
        ENOENT, .writing,
        "cannot write \"a/b\": the directory \"a\" does not exist; create it: mkdir -p \"a\""
      ),
      (
        ENOTDIR, .appending,
        "cannot write \"a/b\": the directory \"a\" does not exist; create it: mkdir -p \"a\""
      ),
      (EISDIR, .reading, "\"a/b\" is a directory; name a file in it"),
      (
        EACCES, .reading,
        "cannot read \"a/b\": Permission denied (errno 13); grant this user read permission"
      ),
      (
        EROFS, .writing,
        "cannot write \"a/b\": Read-only file system (errno 30); grant this user write permission, or choose another path"
      ),
      (
        EMFILE, .appending,
        "cannot write \"a/b\": Too many open files (errno 24); raise the limit on open files (ulimit -n), or run fewer instances"
      ),
      (ENXIO, .writing, "the pipe \"a/b\" has no reader; start its reader first"),
      (
        ENOSPC, .writing,
        "cannot write \"a/b\": No space left on device (errno 28); free disk space, or choose another path"
      ),
      (EIO, .reading, "cannot read \"a/b\": Input/output error (errno 5); choose another file"),
    ])
  func opening(code: Int32, use: FileUse, message: String) {
    let problem = FileMessages.problem(code, "a/b", for: use)
    #expect(problem.description == message)
    #expect(problem.parameter == "path")
  }

  @Test("an empty path is reported as such, whatever the system's error")
  func noPath() {
    #expect(FileMessages.problem(ENOENT, "", for: .reading).description == "the path is empty; name a file")
  }

  @Test(
    "an existing directory that accepts no files is not reported as missing: by name, as the current one, or the root",
    arguments: [("/proc/b.wav", "/proc"), ("b", "."), ("/b", "/")])
  func refusingFolders(path: String, folder: String) {
    #expect(
      FileMessages.problem(ENOENT, path, for: .writing).description
        == "cannot create \"\(path)\" though the directory \"\(folder)\" exists: No such file or directory (errno 2); "
        + "the directory accepts no new files, like those under /proc; choose another path")
  }

  @Test("a dangling link is reported as such, and not as a missing directory")
  func danglingLink() throws {
    let scratch = Scratch()
    try #require(symlink(scratch.path("none/b"), scratch.path("link")) == 0)
    #expect(
      FileMessages.problem(ENOENT, scratch.path("link"), for: .writing).description
        == "\"\(scratch.path("link"))\" is a symbolic link whose target does not exist; create its target, or remove the link"
    )
  }

  @Test(
    "a failed write says what is intact, and the cure if there is one",
    arguments: [
      (ENOSPC, "No space left on device (errno 28); the rest is whole; free disk space"),
      (
        EDQUOT, "Disk quota exceeded (errno 122); the rest is whole; free space within this user's quota"
      ),
      (
        EFBIG,
        "File too large (errno 27); the rest is whole; the file size limit is reached (ulimit -f, or the file system's)"
      ),
      (
        EPIPE,
        "Broken pipe (errno 32); the rest is whole; keep its reader running until the graph ends"
      ),
      (
        ENOENT,
        "No such file or directory (errno 2); the rest is whole; its directory was removed or accepts no new files; choose another path"
      ),
      (EIO, "Input/output error (errno 5); the rest is whole"),
    ])
  func writing(code: Int32, message: String) {
    #expect(
      FileMessages.writeFailure(code, "\"a\"", kept: "the rest is whole") == "writing \"a\" failed: "
        + message)
  }
}
