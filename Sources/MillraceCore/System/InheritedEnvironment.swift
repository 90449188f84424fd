internal import Glibc

/// The environment of child processes: the variables that each of them inherits.
package enum InheritedEnvironment {
  /// Paths, user, language and time zone. All other variables may hold secrets and are passed only by name.
  package static let names: Set = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "XDG_RUNTIME_DIR",
  ]
  /// Prefix of the locale variables, such as `LC_CTYPE`.
  private static let languagePrefix = "LC_"

  /// The inherited variables and the given ones, each `NAME=value`. The last of several with the same name wins.
  package static func with(_ given: [String]) -> [String] {
    var values: [Substring: String] = [:]
    func name(_ text: String) -> Substring { text.prefix { $0 != "=" } }
    var next = unsafe environ
    while let text = unsafe next.pointee {
      let variable = unsafe String(cString: text)
      if names.contains(String(name(variable))) || variable.hasPrefix(languagePrefix) {
        values[name(variable)] = variable
      }
      unsafe next += 1
    }
    for variable in given { values[name(variable)] = variable }
    return values.values.sorted()
  }
}
