internal import Glibc

/// The user's own directories, found as Linux programs find them. Any thread; control side only, as it may read the user database.
///
/// Services and build machines often run without HOME; the user database knows the home directory even then.
public enum UserDirectories {
  /// The home directory: HOME, or the entry in the user database if that is unset or empty; nil if there is neither.
  public static var home: String? { home(variable: variable("HOME"), user: geteuid()) }

  /// The cache directory: XDG_CACHE_HOME, or `.cache` in the home directory; nil if there is neither. (XDG Base Directory
  /// Specification 0.8.)
  public static var cache: String? { variable("XDG_CACHE_HOME") ?? home.map { $0 + "/.cache" } }

  /// The directory of model weights: MILLRACE_MODELS, or `millrace/models` in the cache. Without either,
  /// `/var/cache/millrace/models`, shared by the whole machine.
  public static var models: String {
    variable("MILLRACE_MODELS") ?? (cache ?? "/var/cache") + "/millrace/models"
  }

  static func home(variable: String?, user: uid_t) -> String? { variable ?? listed(user) }

  /// The value of a variable that is set and not empty.
  private static func variable(_ name: String) -> String? {
    guard let text = unsafe getenv(name), let words = unsafe String(validatingCString: text), !words.isEmpty
    else { return nil }
    return words
  }

  /// First and largest buffer size for an entry of the user database: sysconf(_SC_GETPW_R_SIZE_MAX) returns 1,024 on Linux and calls
  /// it a suggestion only.
  private static let entryBytes = 1_024...1_048_576

  /// The home directory of a user in the user database.
  private static func listed(_ user: uid_t) -> String? {
    var size = entryBytes.lowerBound
    while size <= entryBytes.upperBound {
      var entry = unsafe passwd()
      var found: UnsafeMutablePointer<passwd>?
      // The entry's strings lie in this buffer.
      let strings = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { unsafe strings.deallocate() }
      let refusal = unsafe getpwuid_r(user, &entry, strings, size, &found)
      if refusal == EINTR { continue }
      guard refusal == ERANGE else {
        guard refusal == 0, unsafe found != nil, let folder = unsafe entry.pw_dir,
          let path = unsafe String(validatingCString: folder), !path.isEmpty
        else { return nil }
        return path
      }
      size *= 2
    }
    return nil
  }
}
