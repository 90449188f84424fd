#if RTC
  import Glibc
  import MillraceCore
  import MillraceRoomWire

  /// The hub in a process of its own, so that its cost is measured apart from that of its members: this program, started again as
  /// `RoomHubHost`.
  final class RoomHubProcess {
    /// What is started.
    struct Program: Sendable {
      let path: String
      /// Its arguments, which make it run this suite.
      let arguments: [String]

      /// This program: `millrace bench`, or one that only runs measurements and has no subcommands.
      static var own: Program {
        let isBench = CommandLine.arguments.dropFirst().first == "bench"
        return Program(
          path: "/proc/self/exe", arguments: isBench ? ["bench", RoomSuite.name] : [RoomSuite.name])
      }
    }

    /// The port of its WebSocket.
    let port: Int
    /// Its process.
    let id: pid_t
    private let control: Int32

    /// Milliseconds; longer than a program takes to start on a busy machine.
    private static let patience: Int32 = 60_000
    /// Seconds in which it stops by itself.
    private static let ending = 10.0

    /// Starts the hub and waits until it listens.
    /// - Parameter address: of this machine, for media.
    init(_ mode: RoomMediaMode, at address: String, _ program: Program) throws {
      var ends: [Int32] = [-1, -1]
      let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
      guard unsafe socketpair(AF_UNIX, Int32(kind), 0, &ends) == 0 else {
        throw MeasurementProblem("cannot create a socket pair (errno \(errno))")
      }
      let (near, far) = (ends[0], ends[1])
      let started = Result { try RoomHubProcess.start(program, "\(mode.rawValue) \(address)", far) }
      // Closed before the first answer is waited for: a process that ends leaves nobody at the other end.
      close(far)
      let id: pid_t
      do { id = try started.get() } catch {
        close(near)
        throw error
      }
      do { port = try Self.number(near) } catch {
        // A partially initialised class is not deinitialised.
        _ = kill(id, SIGKILL)
        _ = waitpid(id, nil, 0)
        close(near)
        throw error
      }
      control = near
      self.id = id
    }

    private static func start(_ program: Program, _ setting: String, _ control: Int32) throws -> pid_t {
      var actions = unsafe posix_spawn_file_actions_t()
      unsafe posix_spawn_file_actions_init(&actions)
      defer { unsafe posix_spawn_file_actions_destroy(&actions) }
      unsafe posix_spawn_file_actions_adddup2(&actions, control, 0)
      // It prints its machine and the head of the table.
      unsafe posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
      var variables = ["\(RoomSuite.hubVariable)=\(setting)"]
      if let path = DialogueStage.text("LD_LIBRARY_PATH") { variables.append("LD_LIBRARY_PATH=\(path)") }
      let texts = InheritedEnvironment.with(variables)
      let words = ["millrace"] + program.arguments
      let arguments = unsafe words.map { unsafe strdup($0) } + [nil]
      defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
      let environment = unsafe texts.map { unsafe strdup($0) } + [nil]
      defer { for index in unsafe environment.indices { unsafe free(environment[index]) } }
      var id = pid_t()
      let status = unsafe posix_spawnp(&id, program.path, &actions, nil, arguments, environment)
      guard status == 0 else { throw MeasurementProblem("cannot start the hub (errno \(status))") }
      return id
    }

    // A measurement that fails must not leave the process running.
    deinit {
      close(control)
      let end = seconds() + Self.ending
      while seconds() < end {
        if waitpid(id, nil, WNOHANG) == id { return }
        pause(0.005)
      }
      _ = kill(id, SIGKILL)
      _ = waitpid(id, nil, 0)
    }

    // MARK: Questions

    /// Seconds of its processor time so far.
    func work() throws -> Double { Double(try ask(RoomHubHost.work)) / 1e9 }

    /// Its resident memory in KB, without what is free in the heap.
    func memory() throws -> Double { Double(try ask(RoomHubHost.memory)) }

    private func ask(_ question: UInt8) throws -> Int {
      var byte = question
      guard unsafe send(control, &byte, 1, Int32(MSG_NOSIGNAL)) == 1 else {
        throw MeasurementProblem("the hub has ended (errno \(errno))")
      }
      return try Self.number(control)
    }

    /// Reads a line with a number.
    private static func number(_ control: Int32) throws -> Int {
      var text = ""
      while true {
        var item = pollfd(fd: control, events: Int16(POLLIN), revents: 0)
        var byte: UInt8 = 0
        guard unsafe poll(&item, 1, patience) == 1, unsafe recv(control, &byte, 1, 0) == 1 else {
          throw MeasurementProblem("the hub has ended, or does not answer; is this program millrace?")
        }
        if byte == UInt8(ascii: "\n") { break }
        text.unicodeScalars.append(Unicode.Scalar(byte))
      }
      guard let number = Int(text) else {
        throw MeasurementProblem("the hub answered \"\(text)\" instead of a number")
      }
      return number
    }
  }
#endif
