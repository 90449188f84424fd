import Glibc

/// A program could not be started.
struct SpawnProblem: Error {
  /// The system's error code; `ENOENT`: there is no such program.
  let code: Int32
}

/// Starts a program and returns its process id; the caller waits for its end.
/// - Parameters:
///   - program: its path, or a name that is looked up in `PATH`.
///   - arguments: its arguments, with its own name first.
///   - output: a file that exists, to which its standard output is appended.
func spawn(_ program: String, _ arguments: [String], output: String) throws(SpawnProblem) -> pid_t {
  var actions = unsafe posix_spawn_file_actions_t()
  unsafe posix_spawn_file_actions_init(&actions)
  defer { unsafe posix_spawn_file_actions_destroy(&actions) }
  unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_APPEND, 0)
  let values = unsafe arguments.map { unsafe strdup($0) } + [nil]
  defer { for index in unsafe values.indices { unsafe free(values[index]) } }
  var id = pid_t()
  let status = unsafe posix_spawnp(&id, program, &actions, nil, values, environ)
  guard status == 0 else { throw SpawnProblem(code: status) }
  return id
}
