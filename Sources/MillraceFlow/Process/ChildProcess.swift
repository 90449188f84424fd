internal import CMillraceSys
@unsafe @preconcurrency internal import Glibc
internal import MillraceCore

/// One running program with pipes to its standard streams, in a process group of its own.
///
/// What it does *not* do: it has no threads. One thread, the keeper, may call `hasExited`, `signal` and `reap`; the program must
/// be reaped exactly once, and signalled never after.
struct ChildProcess: Sendable {
  /// The writing end of its standard input; -1 when that is empty.
  let input: Int32
  /// The reading end of its standard output.
  let output: Int32
  /// The reading end of its standard error.
  let errors: Int32
  private let id: pid_t
  /// Where it stands among the programs of the process.
  private let place: Int?

  /// Bytes the kernel holds between us and the program: a quarter of a second of 16 kHz speech.
  private static let inputPipeBytes: Int32 = 8192

  /// Starts a program, looked up in PATH.
  /// - Parameters:
  ///   - command: its name and arguments.
  ///   - directory: where it starts; nil: here.
  ///   - environment: `NAME=value` texts; besides, it gets those of ours in `inherited`.
  ///   - isFed: false when its standard input is empty.
  init(
    _ command: [String], directory: String?, environment: [String], isFed: Bool
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
      if stream == 0 && !isFed {
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
      // Above the standard streams, so that putting one in place does not cover another.
      let theirEnd = ends[isInput ? 0 : 1]
      let moved = fcntl(theirEnd, F_DUPFD_CLOEXEC, 3)
      let code = errno
      close(theirEnd)
      theirs.append(try Self.check(moved, code))
      // Ours must not make a thread wait; the other end stays as programs expect it.
      _ = fcntl(ours[stream], F_SETFL, fcntl(ours[stream], F_GETFL) | O_NONBLOCK)
    }
    // A short pipe: a program that does not read is to be seen soon, not after seconds of sound.
    if isFed { millrace_pipe_set_capacity(ours[0], Self.inputPipeBytes) }
    id = try Self.spawn(command, directory: directory, environment: environment, streams: theirs)
    place = StartedPrograms.enter(id)
    isStarted = true
    input = ours[0]
    output = ours[1]
    errors = ours[2]
  }

  private static func check(_ descriptor: Int32, _ code: Int32) throws(NodeProblem) -> Int32 {
    guard descriptor < 0 else { return descriptor }
    throw NodeProblem(
      "cannot make the pipes to the program: \(SystemError.text(code))",
      cure: "raise the limit of open files (ulimit -n)")
  }

  private static func check(directory: String) throws(NodeProblem) {
    var status = stat()
    guard unsafe stat(directory, &status) == 0 else {
      throw NodeProblem(
        "cannot start in \"\(directory)\": \(SystemError.text(errno))", parameter: "directory",
        cure: "make the directory first, or correct the path")
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
    // What else this process has open is not the program's business.
    _ = unsafe millrace_spawn_close_from(&actions, 3)
    if let directory { _ = unsafe millrace_spawn_enter_folder(&actions, directory) }

    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    // A group of its own, and signals as a fresh program has them, whatever this thread blocks.
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))

    let arguments = unsafe CStrings(command)
    let variables = unsafe CStrings(InheritedVariables.with(environment))
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

  /// Ends the program's input. For whoever feeds it, once.
  func closeInput() {
    if input >= 0 { close(input) }
  }

  // MARK: Keeper

  /// True when the program has ended; it stays a known process until it is reaped, so that a signal cannot hit another one.
  var hasExited: Bool {
    var info = unsafe siginfo_t()
    let status = unsafe waitid(P_PID, id_t(id), &info, WEXITED | WNOHANG | WNOWAIT)
    // ECHILD: the embedding program has signals set so that nobody waits for children.
    return status != 0 ? errno == ECHILD : unsafe info.si_signo != 0
  }

  /// Sends a signal to the program and everything it started in its group. Not after `reap`.
  func signal(_ number: Int32) { kill(-id, number) }

  /// Waits for the end of the program, frees its entry and answers its status as waitpid(2) gives it.
  func reap() -> Int32 {
    StartedPrograms.leave(place)
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 {
      guard errno == EINTR else { return 0 }
    }
    return status
  }
}

/// A list of C strings that ends with a null pointer, as exec(3) takes it.
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
