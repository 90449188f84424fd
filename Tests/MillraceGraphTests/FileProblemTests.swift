import Glibc
import MillraceGraph
import Testing

@Suite("reading files")
struct FileProblemTests {
  /// A directory of its own for one test; removed with what the test left in it.
  private final class Scratch {
    let path: String

    init() {
      var template = Array("/tmp/millrace-graph-tests-XXXXXX".utf8CString)
      path = String(cString: mkdtemp(&template)!)
      // Readable for others, so that a test may look at it with fewer rights.
      chmod(path, 0o755)
    }

    deinit {
      if let stream = opendir(path) {
        while let entry = readdir(stream) {
          let name = withUnsafeBytes(of: &entry.pointee.d_name) {
            String(cString: $0.assumingMemoryBound(to: CChar.self).baseAddress!)
          }
          if name != ".", name != ".." { remove("\(path)/\(name)") }
        }
        closedir(stream)
      }
      rmdir(path)
    }

    func write(_ name: String, _ text: String, mode: mode_t = 0o644) -> String {
      let file = "\(path)/\(name)"
      let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
      _ = Array(text.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      fchmod(descriptor, mode)
      close(descriptor)
      return file
    }
  }

  private func problem(reading path: String) -> FileProblem? {
    do throws(FileProblem) {
      _ = try SourceFile.read(path: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("a named pipe that nobody writes to is refused; one with a slow writer is read to its end")
  func pipes() throws {
    let scratch = Scratch()
    let silent = scratch.path + "/silent"
    try #require(mkfifo(silent, 0o600) == 0)
    #expect(
      problem(reading: silent)?.description
        == "cannot read \"\(silent)\": the named pipe has no writer; start its writer first")

    let written = scratch.path + "/written"
    try #require(mkfifo(written, 0o600) == 0)
    // Open before the reader, so that the reader finds a writer who has nothing to say yet.
    let writer = open(written, O_RDWR)
    try #require(writer >= 0)
    let text = String(repeating: "{ }\n", count: 40_000)
    let thread = Thread { [text] in
      usleep(50_000)
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(writer, $0.baseAddress, min($0.count, 10_000)) }
        guard count > 0 else { break }
        rest = rest.dropFirst(count)
        usleep(1_000)
      }
      close(writer)
    }
    let source = try SourceFile.read(path: written)
    thread.join()
    #expect(source.bytes == Array(text.utf8))
  }

  @Test("a file is read whole and keeps its path and the name it is shown by")
  func reads() throws {
    let scratch = Scratch()
    let text = String(repeating: "{ \"é\": 1 }\n", count: 20_000)
    let path = scratch.write("graph.json", text)
    let source = try SourceFile.read(path: path, named: "graph.json")
    #expect(source.bytes == Array(text.utf8))
    #expect(source.name == "graph.json")
    #expect(source.path == path)
    #expect(try SourceFile.read(path: path).name == path)
  }

  @Test("an empty file is read as no bytes")
  func empty() throws {
    let scratch = Scratch()
    #expect(try SourceFile.read(path: scratch.write("empty.json", "")).bytes.isEmpty)
  }

  @Test("a file without a size, as those of /proc, is read to its end")
  func withoutSize() throws {
    #expect(try !SourceFile.read(path: "/proc/self/status").bytes.isEmpty)
  }

  @Test("a missing file says so")
  func missing() {
    let scratch = Scratch()
    #expect(
      problem(reading: "\(scratch.path)/graph.json")?.description
        == """
        cannot open "\(scratch.path)/graph.json": no such file; check the path; a relative one starts at the \
        current directory
        """)
  }

  @Test("a misspelled file offers the one that is there")
  func misspelled() {
    let scratch = Scratch()
    _ = scratch.write("uplink.json", "{}")
    #expect(
      problem(reading: "\(scratch.path)/upilnk.json")?.description
        == #"cannot open "\#(scratch.path)/upilnk.json": no such file; did you mean "uplink.json"?"#)
  }

  @Test("a missing directory is named")
  func missingDirectory() {
    let scratch = Scratch()
    #expect(
      problem(reading: "\(scratch.path)/none/graph.json")?.text
        == #"cannot open "\#(scratch.path)/none/graph.json": no such directory "\#(scratch.path)/none""#)
    let file = scratch.write("a.json", "{}")
    #expect(
      problem(reading: "\(file)/b.json")?.text
        == #"cannot open "\#(file)/b.json": no such directory "\#(file)""#)
  }

  @Test("a directory is refused")
  func directory() {
    let scratch = Scratch()
    #expect(
      problem(reading: scratch.path)?.description
        == #"cannot read "\#(scratch.path)": it is a directory; name a file in it"#)
  }

  @Test("a name no file can have is refused")
  func invalidName() {
    #expect(
      problem(reading: "")?.description
        == #"cannot open "": not a valid file name; it must not be empty or contain a NUL character"#)
    #expect(
      problem(reading: "a\0b")?.description
        == #"cannot open "a\u0000b": not a valid file name; it must not be empty or contain a NUL character"#)
  }

  @Test("a file over 64 MiB is refused without being read")
  func tooLarge() {
    let scratch = Scratch()
    let path = scratch.write("large.json", "")
    truncate(path, off_t(SourceFile.sizeLimit + 1))
    #expect(
      problem(reading: path)?.description
        == #"cannot read "\#(path)": it is larger than 64 MiB; check that it is the right file"#)
  }

  @Test("a device without an end is given up at the limit")
  func endless() {
    #expect(problem(reading: "/dev/zero")?.reason == .tooLarge)
  }

  @Test("a file without the right to read it says how to get it")
  func forbidden() {
    let scratch = Scratch()
    let path = scratch.write("secret.json", "{}", mode: 0)
    let problem = withoutRootRights { self.problem(reading: path) }
    #expect(
      problem?.description
        == #"cannot read "\#(path)": permission denied; grant this user read permission (chmod +r)"#)
  }

  @Test("a system error that has no case of its own keeps its words")
  func systemError() {
    let name = String(repeating: "n", count: 300)
    #expect(problem(reading: name)?.reason == .system(code: ENAMETOOLONG, text: "File name too long"))
  }

  @Test("a file that cannot be opened is a problem without a source when a document is read")
  func asProblem() {
    let scratch = Scratch()
    do throws(Problem) {
      _ = try JSONDocument.read(path: scratch.path)
      Issue.record("a directory was read")
    } catch {
      #expect(
        error.description == #"error: cannot read "\#(scratch.path)": it is a directory; name a file in it"#)
    }
  }

  /// Runs a closure with the file rights of nobody when the tests run as root, who may read everything. Only the calling thread's
  /// rights change (setfsuid(2)), so that tests beside it are not disturbed.
  private func withoutRootRights<Value>(_ body: () -> Value) -> Value {
    guard geteuid() == 0 else { return body() }
    typealias SetFileUser = @convention(c) (uid_t) -> Int32
    let nobody: uid_t = 65_534
    let setfsuid = unsafeBitCast(dlsym(nil, "setfsuid"), to: SetFileUser.self)
    _ = setfsuid(nobody)
    defer { _ = setfsuid(0) }
    return body()
  }
}

/// A thread that can be waited for.
private final class Thread: @unchecked Sendable {
  private var thread = pthread_t()

  init(_ body: @escaping @Sendable () -> Void) {
    final class Body {
      let run: @Sendable () -> Void; init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    let parcel = Unmanaged.passRetained(Body(body)).toOpaque()
    pthread_create(
      &thread, nil,
      {
        Unmanaged<Body>.fromOpaque($0!).takeRetainedValue().run()
        return nil
      }, parcel)
  }

  func join() { pthread_join(thread, nil) }
}
