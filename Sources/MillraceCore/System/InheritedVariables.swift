internal import Glibc

/// The environment of programs that are started: what of ours every one gets.
package enum InheritedVariables {
  /// Where programs and files are, who the user is, language and time zone. The rest may hold anybody's keys, and is given by name.
  package static let names: Set = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "XDG_RUNTIME_DIR",
  ]
  /// Of the language, one variable each matter of it: `LC_CTYPE`.
  private static let languagePrefix = "LC_"

  /// The inherited variables and those that were given, each `NAME=value`. Of several of one name the last counts.
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
