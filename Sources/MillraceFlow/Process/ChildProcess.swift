internal import CMillraceSys
@unsafe @preconcurrency internal import Glibc
internal import MillraceCore

/// A running program with pipes to its standard streams, in its own process group.
///
/// It has no threads. Only the supervisor thread calls `hasExited`, `signal` and `reap`. The program must be reaped exactly once and
/// never signalled afterwards.
struct ChildProcess: Sendable {
  /// Write end of its standard input; -1 if that is empty.
  let input: Int32
  /// Read end of its standard output.
  let output: Int32
  /// Read end of its standard error.
  let errors: Int32
  private let id: pid_t
  /// Its slot in `RunningPrograms`.
  private let place: Int?

  /// Capacity of the pipe to the program: a quarter of a second of 16 kHz speech.
  private static let inputPipeBytes: Int32 = 8192

  /// Starts a program, looked up in PATH.
  /// - Parameters:
  ///   - command: its name and arguments.
  ///   - directory: working directory; nil: this process's.
  ///   - environment: `NAME=value` strings, added to this process's variables named in `inherited`.
  ///   - isInputLinked: false: its standard input is empty.
  init(
    _ command: [String], directory: String?, environment: [String], isInputLinked: Bool
  ) throws(NodeProblem) {
    if let directory { try Self.check(directory: directory) }
    var ours: [Int32] = []
    var theirs: [Int32] = []
    var isStarted = false
    defer {
      for end in theirs { close(end) }
      if !isStarted { for end in ours { close(end) } }
    }
    for stream in 0..<3 {
      if stream == 0 && !isInputLinked {
        let nothing = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        theirs.append(try Self.check(nothing, errno))
        ours.append(-1)
        continue
      }
      var ends: [Int32] = [-1, -1]
      let refusal = unsafe millrace_pipe_make(&ends, false)
      _ = try Self.check(refusal == 0 ? ends[0] : -1, refusal)
      let isInput = stream == 0
      ours.append(ends[isInput ? 1 : 0])
      // Above the standard streams, so that dup2 onto one does not close another.
      let theirEnd = ends[isInput ? 0 : 1]
      let moved = fcntl(theirEnd, F_DUPFD_CLOEXEC, 3)
      let code = errno
      close(theirEnd)
      theirs.append(try Self.check(moved, code))
      // Our ends are non-blocking; the program's ends block, as programs expect.
      _ = fcntl(ours[stream], F_SETFL, fcntl(ours[stream], F_GETFL) | O_NONBLOCK)
    }
    // A small pipe: a program that stops reading is noticed soon, not after seconds of audio.
    if isInputLinked { millrace_pipe_set_capacity(ours[0], Self.inputPipeBytes) }
    id = try Self.spawn(command, directory: directory, environment: environment, streams: theirs)
    place = RunningPrograms.register(id)
    isStarted = true
    input = ours[0]
    output = ours[1]
    errors = ours[2]
  }

  private static func check(_ descriptor: Int32, _ code: Int32) throws(NodeProblem) -> Int32 {
    guard descriptor < 0 else { return descriptor }
    throw NodeProblem(
      "cannot create pipes to the program: \(SystemError.text(code))",
      cure: "raise the limit on open files (ulimit -n)")
  }

  private static func check(directory: String) throws(NodeProblem) {
    var status = stat()
    guard unsafe stat(directory, &status) == 0 else {
      throw NodeProblem(
        "cannot start in \"\(directory)\": \(SystemError.text(errno))", parameter: "directory",
        cure: "create the directory, or correct the path")
    }
    guard status.st_mode & S_IFMT != S_IFDIR else { return }
    throw NodeProblem(
      "cannot start in \"\(directory)\": it is not a directory", parameter: "directory",
      cure: "name a directory")
  }

  private static func spawn(
    _ command: [String], directory: String?, environment: [String], streams: [Int32]
  ) throws(NodeProblem) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (stream, descriptor) in streams.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(stream))
    }
    // The program inherits no other descriptors.
    _ = unsafe millrace_spawn_close_from(&actions, 3)
    if let directory { _ = unsafe millrace_spawn_enter_folder(&actions, directory) }

    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    // A new process group, and default signal handling whatever this thread blocks.
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))

    let arguments = unsafe CStrings(command)
    let variables = unsafe CStrings(InheritedEnvironment.with(environment))
    defer {
      unsafe arguments.free()
      unsafe variables.free()
    }
    var id: pid_t = 0
    let code = unsafe posix_spawnp(
      &id, command[0], &actions, &attributes, arguments.pointers, variables.pointers)
    guard code == 0 else { throw problem(code, command[0]) }
    return id
  }

  private static func problem(_ code: Int32, _ program: String) -> NodeProblem {
    let cure: String =
      switch code {
      case ENOENT: "install it, or give its full path"
      case EACCES: "make it executable: chmod +x"
      case ENOEXEC: "start it through its interpreter"
      default: "try it in a shell first"
      }
    return NodeProblem(
      "cannot start \"\(program)\": \(SystemError.text(code))", parameter: "command", cure: cure)
  }

  /// Closes the program's input. Called once, by the thread that writes it.
  func closeInput() {
    if input >= 0 { close(input) }
  }

  // MARK: Supervisor

  /// True when the program has exited. It stays a zombie until it is reaped, so a signal cannot reach another process.
  var hasExited: Bool {
    var info = unsafe siginfo_t()
    let status = unsafe waitid(P_PID, id_t(id), &info, WEXITED | WNOHANG | WNOWAIT)
    // ECHILD: the embedding program ignores SIGCHLD, so the kernel reaps children itself.
    return status != 0 ? errno == ECHILD : unsafe info.si_signo != 0
  }

  /// Sends a signal to the program and to everything in its process group. Not after `reap`.
  func signal(_ number: Int32) { kill(-id, number) }

  /// Waits for the program to exit, frees its process entry and returns its status as waitpid(2) does.
  func reap() -> Int32 {
    RunningPrograms.unregister(place)
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 {
      guard errno == EINTR else { return 0 }
    }
    return status
  }
}

/// A null-terminated list of C strings, as exec(3) takes it.
@unsafe
private struct CStrings {
  let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let count: Int

  init(_ texts: [String]) {
    unsafe count = texts.count
    unsafe pointers = .allocate(capacity: texts.count + 1)
    for (index, text) in texts.enumerated() { unsafe pointers[index] = unsafe strdup(text) }
    unsafe pointers[texts.count] = nil
  }

  func free() {
    for index in unsafe 0..<count { unsafe Glibc.free(pointers[index]) }
    unsafe pointers.deallocate()
  }
}
