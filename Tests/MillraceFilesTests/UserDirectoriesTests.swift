import Glibc
import TestSystem
import Testing

@testable import MillraceFiles

@Suite("The user's directories", .timeLimit(.minutes(30))) struct UserDirectoriesTests {
  @Test("the home directory is HOME")
  func told() async {
    await #expect(processExitsWith: .success) {
      setenv("HOME", "/nowhere/else", 1)
      unsetenv("XDG_CACHE_HOME")
      unsetenv("MILLRACE_MODELS")
      #expect(UserDirectories.home == "/nowhere/else")
      #expect(UserDirectories.cache == "/nowhere/else/.cache")
      #expect(UserDirectories.models == "/nowhere/else/.cache/millrace/models")
    }
  }

  @Test("without HOME, or with an empty one, the home directory comes from the user database")
  func listed() async {
    await #expect(processExitsWith: .success) {
      unsetenv("XDG_CACHE_HOME")
      unsetenv("MILLRACE_MODELS")
      let listed = try #require(getpwuid(geteuid()).flatMap { String(validatingCString: $0.pointee.pw_dir) })
      unsetenv("HOME")
      #expect(UserDirectories.home == listed)
      #expect(UserDirectories.models == listed + "/.cache/millrace/models")
      setenv("HOME", "", 1)
      #expect(UserDirectories.home == listed)
    }
  }

  @Test("a user missing from the database has none")
  func unlisted() {
    #expect(UserDirectories.home(variable: nil, user: 4_123_456_789) == nil)
    #expect(UserDirectories.home(variable: "/told", user: 4_123_456_789) == "/told")
  }

  @Test("variables for the cache and for models take precedence")
  func own() async {
    await #expect(processExitsWith: .success) {
      unsetenv("MILLRACE_MODELS")
      setenv("XDG_CACHE_HOME", "/cache", 1)
      #expect(UserDirectories.cache == "/cache")
      #expect(UserDirectories.models == "/cache/millrace/models")
      setenv("MILLRACE_MODELS", "/models", 1)
      #expect(UserDirectories.models == "/models")
    }
  }

  @Test(
    "the script that fetches the weights puts them where the nodes look",
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
    // Only the variables that the script was given count, not this process's own.
    let cache = environment["XDG_CACHE_HOME"].flatMap { $0.isEmpty ? nil : $0 }
    let named = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 }
    let home = try #require(UserDirectories.home(variable: named, user: geteuid()))
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
