internal import Glibc

/// The user's own folders, as programs on Linux find them. Any thread; may read the system's list of users, so control side only.
///
/// Services and build machines often run without HOME. The system's list of users knows the folder even then.
public enum UserFolder {
  /// The home folder: HOME, or what the system's list of users says when that is unset or empty; nil when neither tells.
  public static var home: String? { home(variable: variable("HOME"), user: geteuid()) }

  /// Where the user's programs keep what they can get again: XDG_CACHE_HOME, or `.cache` in the home folder; nil when there is
  /// neither. (XDG Base Directory Specification 0.8.)
  public static var cache: String? { variable("XDG_CACHE_HOME") ?? home.map { $0 + "/.cache" } }

  /// Where the weights of networks lie: MILLRACE_MODELS, or `millrace/models` in the cache. A user without any folder shares
  /// that below `/var/cache` with the whole machine.
  public static var models: String {
    variable("MILLRACE_MODELS") ?? (cache ?? "/var/cache") + "/millrace/models"
  }

  static func home(variable: String?, user: uid_t) -> String? { variable ?? listed(user) }

  /// The value of a variable that is set to something.
  private static func variable(_ name: String) -> String? {
    guard let text = unsafe getenv(name), let words = unsafe String(validatingCString: text), !words.isEmpty
    else { return nil }
    return words
  }

  /// Bytes of an entry of the list that are tried at first, and at most: sysconf(_SC_GETPW_R_SIZE_MAX) answers 1,024 on Linux and
  /// calls it a suggestion only.
  private static let entryBytes = 1_024...1_048_576

  /// The folder that the system's list of users gives a user.
  private static func listed(_ user: uid_t) -> String? {
    var size = entryBytes.lowerBound
    while size <= entryBytes.upperBound {
      var entry = unsafe passwd()
      var found: UnsafeMutablePointer<passwd>?
      // The entry's texts lie here.
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
