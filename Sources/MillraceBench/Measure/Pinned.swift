import CMillraceSys
import Glibc

/// Runs work on threads that are bound to one processor.
enum Pinned {
  /// The processor for measurements on one core: the last one, since the first tends to serve interrupts.
  static var core: Int { max(0, sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1) }

  /// Runs `work` on a new thread bound to one processor. Threads it starts inherit the binding.
  static func run<Result>(on core: Int, _ work: @escaping () throws -> Result) throws -> Result {
    let task = BoundTask<Result>(core: core, work)
    pthread_join(try begin(task), nil)
    return try task.outcome.get()
  }

  /// Runs two closures at once, each on its processor, and returns the result of the second.
  static func pair<Result>(
    _ first: @escaping () -> Void, on core: Int, _ second: @escaping () -> Result, on otherCore: Int
  ) throws -> Result {
    let task = BoundTask<Void>(core: core, first)
    let thread = try begin(task)
    defer { pthread_join(thread, nil) }
    return try run(on: otherCore, second)
  }

  /// Starts a thread for a task. The caller keeps the task alive until it has joined the thread.
  private static func begin(_ task: AnyTask) throws -> pthread_t {
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        unsafe Unmanaged<AnyTask>.fromOpaque(argument!).takeUnretainedValue().run()
        return nil
      }, unsafe Unmanaged.passUnretained(task).toOpaque())
    guard status == 0 else { throw MeasurementProblem("cannot start a thread (error \(status))") }
    return thread
  }

  private class AnyTask {
    func run() {}
  }

  /// Work for a bound thread, and its result.
  private final class BoundTask<Result>: AnyTask {
    private let core: Int
    private let work: () throws -> Result
    private(set) var outcome: Swift.Result<Result, any Error>

    init(core: Int, _ work: @escaping () throws -> Result) {
      self.core = core
      self.work = work
      outcome = .failure(MeasurementProblem("cannot bind a thread to processor \(core)"))
    }

    override func run() {
      if millrace_bind_thread(Int32(core)) == 0 { outcome = Swift.Result { try work() } }
    }
  }
}
