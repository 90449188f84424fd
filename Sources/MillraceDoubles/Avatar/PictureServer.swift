internal import CMillraceSys
internal import Glibc
internal import MillraceCore

/// A private RTMP server for the pictures of a double: nginx with its RTMP module, on a free port of this machine.
///
/// It ends with `stop`, with this object, and with the process, whatever ends that.
@safe
public final class PictureServer: Sendable {
  private static let nginx = "/usr/sbin/nginx"
  private static let module = "/usr/lib/nginx/modules/ngx_rtmp_module.so"
  /// Timeout of its start, in milliseconds.
  private static let patience = 30_000

  private enum State {
    case starting
    case running(pid_t)
    case over
  }

  /// The port that it listens on.
  public let port: Int
  /// Where streams are published and played; their names follow.
  public var address: String { "rtmp://127.0.0.1:\(port)/live" }
  private let folder: String
  private let state = Locked(State.starting)

  /// True where the server is installed.
  public static var isInstalled: Bool { unsafe access(nginx, X_OK) == 0 && access(module, R_OK) == 0 }

  /// Starts a server, and waits until it answers.
  /// - Throws: why there is none, and the cure.
  public static func start() async throws(DoubleProblem) -> PictureServer {
    let result = await withCheckedContinuation { continuation in
      let status = DetachedThread.start("double pictures") {
        continuation.resume(returning: Result { () throws(DoubleProblem) in try PictureServer() })
      }
      if status != 0 {
        continuation.resume(returning: .failure(DoubleProblem.other("cannot start a thread")))
      }
    }
    return try result.get()
  }

  /// Blocks until it answers: not for the network thread.
  private init() throws(DoubleProblem) {
    guard Self.isInstalled else {
      throw .other(
        "there is no RTMP server for the double's pictures; install the packages nginx and libnginx-mod-rtmp, or name a server with "
          + "\"stream\" in the scenario")
    }
    var template = Array("/tmp/millrace-pictures-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw .other("cannot create a folder in /tmp; free some space there")
    }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    port = Self.freePort()
    let configuration = Self.configuration(folder, port)
    let path = folder + "/nginx.conf"
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    let count = unsafe Glibc.write(file, configuration, configuration.count)
    close(file)
    guard count == configuration.count else {
      throw .other("cannot write \"\(path)\"; free some space there")
    }
    let (state, folder) = (state, folder)
    // The system ends the server when the thread that has started it ends.
    guard DetachedThread.start("double pictures", { Self.run(folder, state) }) == 0 else {
      throw .other("cannot start a thread")
    }
    for _ in 0..<Self.patience where !Self.answers(port) {
      if case .over = state.withLock({ $0 }) { break }
      usleep(1_000)
    }
    guard Self.answers(port) else {
      stop()
      throw .other("the RTMP server for the double's pictures does not start: \(Self.lastLogLine(folder))")
    }
  }

  /// The last line of the server's log.
  private static func lastLogLine(_ folder: String) -> String {
    let file = unsafe open("\(folder)/error.log", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "it wrote no log" }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16_384)
    let count = unsafe max(0, read(file, &bytes, bytes.count))
    return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n").last.map(String.init)
      ?? "its log is empty"
  }

  deinit {
    stop()
    for name in ["nginx.conf", "nginx.pid", "error.log"] { unsafe unlink("\(folder)/\(name)") }
    unsafe rmdir(folder)
  }

  /// Ends the server. Any thread.
  public func stop() {
    state.withLock { state in
      if case .running(let process) = state { kill(process, SIGTERM) }
      if case .starting = state { state = .over }
    }
  }

  // MARK: The process

  private static func run(_ folder: String, _ state: Locked<State>) {
    let arguments = [
      "setpriv", "--pdeathsig", "TERM", nginx, "-p", folder, "-e", "\(folder)/error.log", "-c",
      "\(folder)/nginx.conf",
    ]
    let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    // Keys in the environment of this program are not passed on.
    let variables = unsafe InheritedEnvironment.with([]).map { unsafe strdup($0) } + [nil]
    var files = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&files)
    for number in [1, 2] as [Int32] {
      unsafe posix_spawn_file_actions_addopen(&files, number, "/dev/null", O_WRONLY, 0)
    }
    _ = unsafe millrace_spawn_close_from(&files, 3)
    // This thread blocks all signals, and the server has to take the one that ends it.
    var (attributes, none, all) = (posix_spawnattr_t(), sigset_t(), sigset_t())
    unsafe posix_spawnattr_init(&attributes)
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    defer {
      unsafe posix_spawnattr_destroy(&attributes)
      for index in unsafe words.indices { unsafe free(words[index]) }
      for index in unsafe variables.indices { unsafe free(variables[index]) }
      unsafe posix_spawn_file_actions_destroy(&files)
    }
    var process = pid_t()
    let isStarted = state.withLock { state in
      guard case .starting = state,
        unsafe posix_spawnp(&process, "setpriv", &files, &attributes, words, variables) == 0
      else {
        state = .over
        return false
      }
      state = .running(process)
      return true
    }
    guard isStarted else { return }
    var information = unsafe siginfo_t()
    // It keeps its number until nobody sends it a signal any more.
    while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    state.withLock { state in
      state = .over
      _ = waitpid(process, nil, 0)
    }
  }

  private static func configuration(_ folder: String, _ port: Int) -> [UInt8] {
    // Neither forks nor a master: the process that is started is the server.
    let text = """
      load_module \(module);
      daemon off;
      master_process off;
      pid \(folder)/nginx.pid;
      error_log \(folder)/error.log warn;
      events { worker_connections 512; }
      rtmp {
        server {
          listen 127.0.0.1:\(port);
          chunk_size 4096;
          application live {
            live on;
            wait_key on;
            sync 10ms;
            record off;
          }
        }
      }

      """
    return Array(text.utf8)
  }

  // MARK: Ports

  private static func freePort() -> Int {
    let descriptor = loopbackSocket()
    defer { close(descriptor) }
    var address = Self.address(0)
    _ = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length)
      }
    }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  private static func answers(_ port: Int) -> Bool {
    let descriptor = loopbackSocket()
    defer { close(descriptor) }
    var address = Self.address(port)
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func loopbackSocket() -> Int32 {
    socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
