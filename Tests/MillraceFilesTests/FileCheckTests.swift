import Glibc
import MillraceCore
import MillraceFiles
import Testing

@Suite("Checking a path before it is opened") struct FileCheckTests {
  private let scratch = Scratch()

  private func reading(_ path: String) -> String {
    refusal { () throws(NodeProblem) in try FileCheck.reading(path) }
  }

  private func writing(_ path: String) -> String {
    refusal { () throws(NodeProblem) in try FileCheck.writing(path) }
  }

  @Test("a path to read is an existing, readable file that is not empty")
  func readable() throws {
    #expect(reading(scratch.file("a")) == "nothing")
    #expect(reading("") == "the path is empty")
    #expect(reading(scratch.path("none")) == "there is no file \"\(scratch.path("none"))\"")
    #expect(reading(scratch.folder) == "\"\(scratch.folder)\" is a directory")
    #expect(reading(scratch.file("empty", "")) == "\"\(scratch.path("empty"))\" is empty")
    #expect(reading("/dev/null") == "\"/dev/null\" is a pipe or a device, not a file")
  }

  @Test("a path to write exists, or its directory does")
  func writable() throws {
    #expect(writing(scratch.file("a")) == "nothing")
    #expect(writing(scratch.path("new")) == "nothing")
    #expect(scratch.text("new") == nil, "the check creates nothing")
    #expect(writing("/dev/null") == "nothing")
    #expect(writing("") == "the path is empty")
    #expect(writing(scratch.folder) == "\"\(scratch.folder)\" is a directory")
    let deep = scratch.path("none/a")
    #expect(
      writing(deep) == "cannot write \"\(deep)\": the directory \"\(scratch.path("none"))\" does not exist")
    let (file, below) = (scratch.path("a"), scratch.path("a/b"))
    #expect(writing(below) == "cannot write \"\(below)\": \"\(file)\" is a file, not a directory")
    let deeper = scratch.path("a/b/c")
    #expect(writing(deeper) == "cannot write \"\(deeper)\": part of \"\(below)\" is a file, not a directory")
  }

  @Test("a path without read or write permission is refused, whether on the file or on its directory")
  func rights() async {
    await #expect(processExitsWith: .exitCode(42)) {
      let scratch = Scratch()
      chmod(scratch.file("closed"), 0o000)
      chmod(scratch.file("fixed"), 0o444)
      chmod(scratch.folder, 0o555)
      // Root may do everything, so become nobody, who cannot even reach this directory by its full path.
      chdir(scratch.folder)
      if getuid() == 0 { setuid(65_534) }
      let words = [
        refusal { () throws(NodeProblem) in try FileCheck.reading("closed") },
        refusal { () throws(NodeProblem) in try FileCheck.writing("fixed") },
        refusal { () throws(NodeProblem) in try FileCheck.writing("new") },
        refusal { () throws(NodeProblem) in try FileCheck.reading("fixed") },
      ]
      let expected = [
        "cannot read \"closed\": Permission denied (errno 13)",
        "cannot write \"fixed\": Permission denied (errno 13)",
        "cannot write \"new\": Permission denied (errno 13)", "nothing",
      ]
      exit(words == expected ? 42 : 1)
    }
  }

  @Test("pipes and sockets are recognised")
  func pipes() throws {
    try #require(mkfifo(scratch.path("pipe"), 0o600) == 0)
    #expect(FileCheck.isPipe(scratch.path("pipe")))
    #expect(!FileCheck.isPipe(scratch.file("a")))
    #expect(!FileCheck.isPipe("/dev/null") && !FileCheck.isPipe(scratch.path("none")))
    #expect(FileCheck.isPlain(scratch.file("plain")) && FileCheck.isPlain(scratch.path("none")))
    #expect(!FileCheck.isPlain("/dev/null") && !FileCheck.isPlain(scratch.folder))
    #expect(reading(scratch.path("pipe")).hasSuffix("is a pipe or a device, not a file"))
  }
}

@Suite("Writing to a pipe without a reader") struct PipeSignalTests {
  /// Writes a byte to a pipe without a reader; returns the error.
  private static func writeToNobody() -> Int32 {
    var ends: [Int32] = [0, 0]
    _ = pipe(&ends)
    close(ends[0])
    defer { close(ends[1]) }
    return write(ends[1], "x", 1) < 0 ? errno : 0
  }

  @Test("fails with an error and does not end the program; its signal handling stays unchanged")
  func blocked() async {
    await #expect(processExitsWith: .exitCode(42)) {
      signal(SIGPIPE, SIG_DFL)
      let code = PipeSignal.withBlocked { PipeSignalTests.writeToNobody() }
      var mask = sigset_t()
      pthread_sigmask(SIG_SETMASK, nil, &mask)
      exit(code == EPIPE && sigismember(&mask, SIGPIPE) == 0 ? 42 : 1)
    }
  }

  @Test("a signal that was pending before is still pending afterwards")
  func pending() async {
    await #expect(processExitsWith: .exitCode(42)) {
      PipeSignal.block()
      raise(SIGPIPE)
      _ = PipeSignal.withBlocked { PipeSignalTests.writeToNobody() }
      var waiting = sigset_t()
      sigpending(&waiting)
      exit(sigismember(&waiting, SIGPIPE) == 1 ? 42 : 1)
    }
  }
}
