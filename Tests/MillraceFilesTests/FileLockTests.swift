import Foundation
import Glibc
import MillraceCore
import MillraceFiles
import TestSystem
import Testing

@Suite("File locks") struct FileLockTests {
  private let scratch = Scratch()

  /// The error of a second lock while a first is held.
  private func second(_ use: FileUse, besides first: FileUse, _ path: String) throws -> String {
    let claim = try FileLock(path, for: first)
    let message = refusal { () throws(NodeProblem) in _ = try FileLock(path, for: use) }
    _ = consume claim
    return message
  }

  @Test("readers share a file, appenders share a file, a writer has it alone")
  func kinds() throws {
    let path = scratch.file("a")
    for use in [FileUse.reading, .appending] {
      #expect(try second(use, besides: use, path) == "nothing")
      #expect(
        try second(.writing, besides: use, path)
          == "\"\(path)\" is being read or written by another node or program")
      #expect(
        try second(use, besides: .writing, path) == "\"\(path)\" is being written by another node or program")
    }
    #expect(
      try second(.writing, besides: .writing, path)
        == "\"\(path)\" is being read or written by another node or program")
  }

  /// Another descriptor for a file this process has open, as a child has between fork and exec; -1 if there is none.
  private func copy(of path: String) -> Int32 {
    var wanted = stat()
    guard stat(path, &wanted) == 0 else { return -1 }
    for descriptor in 3..<Int32(4_096) {
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { continue }
      if status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev { return dup(descriptor) }
    }
    return -1
  }

  @Test("a released file is free at once, even while a child that is being started still has it open")
  func inherited() throws {
    let path = scratch.file("a")
    let claim = try FileLock(path, for: .writing)
    let copy = copy(of: path)
    defer { close(copy) }
    try #require(copy >= 0)
    _ = consume claim
    #expect(refusal { () throws(NodeProblem) in _ = try FileLock(path, for: .writing) } == "nothing")
  }

  @Test("each refusal has its own cure")
  func cures() throws {
    let path = scratch.file("a")
    let writer = try FileLock(path, for: .writing)
    func cure(_ use: FileUse) -> String? {
      do { _ = try FileLock(path, for: use) } catch { return error.cure }
      return nil
    }
    #expect(cure(.reading) == "read it after its writer has finished, or write to another file")
    #expect(
      cure(.writing)
        == "write to another file; several instances need one each (put {instance} in the name)")
    #expect(cure(.appending) == "write to another file, or append in both")
    _ = consume writer
    #expect(cure(.writing) == nil, "the lock ended with its holder")
  }

  @Test("a lock for writing creates a missing file and leaves an existing one alone")
  func making() throws {
    _ = try FileLock(scratch.path("new"), for: .writing)
    #expect(scratch.text("new") == "")
    _ = try FileLock(scratch.file("old", "kept"), for: .writing)
    #expect(scratch.text("old") == "kept")
    let none = scratch.path("none")
    #expect(
      refusal { () throws(NodeProblem) in _ = try FileLock(none, for: .reading) }
        == "there is no file \"\(none)\"")
    #expect(scratch.text("none") == nil)
  }

  @Test("a pipe or device is not locked, and its reader sees no end of file")
  func pipes() throws {
    let path = scratch.path("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    let writer = open(path, O_WRONLY | O_CLOEXEC)
    #expect(try second(.writing, besides: .writing, path) == "nothing")
    close(writer)
    #expect(isAtItsEnd(reader))
    close(reader)
    #expect(try second(.writing, besides: .writing, "/dev/null") == "nothing")
  }

  @Test(
    "an opened file is locked until it is unlocked or closed, and keeps its content until it is truncated")
  func opened() throws {
    let path = scratch.file("a", "old")
    let file = try OpenedFile(path, for: .writing)
    #expect(file.kind == .file)
    let message = "\"\(path)\" is being read or written by another node or program"
    func open() -> String { refusal { () throws(NodeProblem) in _ = try FileLock(path, for: .writing) } }
    #expect(open() == message)
    FileLock.unlock(file.descriptor)
    #expect(open() == "nothing")
    #expect(scratch.text("a") == "old")
    #expect(OpenedFile.truncate(file.descriptor) == 0)
    #expect(scratch.text("a") == "")
    close(file.descriptor)
    #expect(OpenedFile.truncate(-1) == EBADF)
  }

  @Test("a refused file leaves no descriptor open")
  func refused() throws {
    let path = scratch.file("a")
    let writer = try FileLock(path, for: .writing)
    #expect(refusal { () throws(NodeProblem) in _ = try OpenedFile(path, for: .reading) } != "nothing")
    #expect(refusal { () throws(NodeProblem) in _ = try FileLock(path, for: .reading) } != "nothing")
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    let open = descriptors.count {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
    }
    #expect(open == 1, "only the writer's")
    _ = consume writer
  }

  @Test("a file opened for appending grows at its end; one opened for reading cannot be written")
  func modes() throws {
    let path = scratch.file("a", "old")
    let appending = try OpenedFile(path, for: .appending)
    #expect(write(appending.descriptor, "new", 3) == 3)
    close(appending.descriptor)
    #expect(scratch.text("a") == "oldnew")
    let reading = try OpenedFile(path, for: .reading)
    #expect(write(reading.descriptor, "x", 1) == -1)
    close(reading.descriptor)
  }

  @Test("the kind of a descriptor is recognised")
  func descriptors() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    #expect(OpenedFile.Kind(of: ends[1]) == .pipe)
    ends.forEach { close($0) }
    let sound = open("/dev/null", O_WRONLY)
    #expect(OpenedFile.Kind(of: sound) == .device && OpenedFile.Kind(of: -1) == .device)
    close(sound)
  }
}
