import Glibc
import TestSystem
import Testing

@testable import MillraceFiles

@Suite("The user's folder", .timeLimit(.minutes(30))) struct UserFolderTests {
  @Test("it is what HOME says")
  func told() async {
    await #expect(processExitsWith: .success) {
      setenv("HOME", "/nowhere/else", 1)
      unsetenv("XDG_CACHE_HOME")
      unsetenv("MILLRACE_MODELS")
      #expect(UserFolder.home == "/nowhere/else")
      #expect(UserFolder.cache == "/nowhere/else/.cache")
      #expect(UserFolder.models == "/nowhere/else/.cache/millrace/models")
    }
  }

  @Test("without HOME, or with an empty one, it is what the system's list of users says")
  func listed() async {
    await #expect(processExitsWith: .success) {
      unsetenv("XDG_CACHE_HOME")
      unsetenv("MILLRACE_MODELS")
      let listed = try #require(getpwuid(geteuid()).flatMap { String(validatingCString: $0.pointee.pw_dir) })
      unsetenv("HOME")
      #expect(UserFolder.home == listed)
      #expect(UserFolder.models == listed + "/.cache/millrace/models")
      setenv("HOME", "", 1)
      #expect(UserFolder.home == listed)
    }
  }

  @Test("a user who is not in the list has none")
  func unlisted() {
    #expect(UserFolder.home(variable: nil, user: 4_123_456_789) == nil)
    #expect(UserFolder.home(variable: "/told", user: 4_123_456_789) == "/told")
  }

  @Test("folders of their own for the cache and for models go before it")
  func own() async {
    await #expect(processExitsWith: .success) {
      unsetenv("MILLRACE_MODELS")
      setenv("XDG_CACHE_HOME", "/cache", 1)
      #expect(UserFolder.cache == "/cache")
      #expect(UserFolder.models == "/cache/millrace/models")
      setenv("MILLRACE_MODELS", "/models", 1)
      #expect(UserFolder.models == "/models")
    }
  }

  @Test(
    "what fetches the weights puts them where the nodes look",
    .enabled(if: TestProgram.isInstalled("python3"), "python3 is not installed"),
    arguments: [
      [:], ["HOME": ""], ["HOME": "/nowhere/else"], ["HOME": "/nowhere/else", "XDG_CACHE_HOME": "/cache"],
      ["XDG_CACHE_HOME": "", "MILLRACE_MODELS": "/models"],
    ])
  func sameAsScript(environment: [String: String]) throws {
    let script = String(#filePath.split(separator: "/").dropLast(3).reduce(into: "") { $0 += "/" + $1 })
    let folder = TemporaryFolder()
    let program = """
      import importlib.util, os
      spec = importlib.util.spec_from_file_location("fetch", "\(script)/Models/silero-vad.py")
      fetch = importlib.util.module_from_spec(spec)
      spec.loader.exec_module(fetch)
      print(os.path.dirname(fetch.destination()), end="")
      """
    let python = try TestProgram(
      try #require(TestProgram.path(of: "python3")), ["-B", "-c", program], environment: environment,
      output: .file(folder.file("said")))
    #expect(python.wait() == 0)
    let said = try #require(text(of: folder.file("said")))
    // Of this process's own variables only those are looked at that the script was given.
    let cache = environment["XDG_CACHE_HOME"].flatMap { $0.isEmpty ? nil : $0 }
    let named = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 }
    let home = try #require(UserFolder.home(variable: named, user: geteuid()))
    #expect(said == environment["MILLRACE_MODELS"] ?? (cache ?? home + "/.cache") + "/millrace/models")
  }
}

private func text(of path: String) -> String? {
  guard let file = fopen(path, "r") else { return nil }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 4_096)
  let count = fread(&bytes, 1, bytes.count, file)
  return String(decoding: bytes[..<count], as: UTF8.self)
}
