import CMillraceSys
import Glibc

/// Threads tied to one processor.
enum Pinned {
  /// The processor measurements on one core use: the last one, since the first tends to serve interrupts.
  static var core: Int { max(0, sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1) }

  /// Does something on a thread of its own that may use one processor only. Threads it starts inherit that.
  static func run<Result>(on core: Int, _ work: @escaping () throws -> Result) throws -> Result {
    let errand = Errand<Result>(core: core, work)
    pthread_join(try begin(errand), nil)
    return try errand.outcome.get()
  }

  /// Two things at once, each on its processor; answers what the second one did.
  static func pair<Result>(
    _ first: @escaping () -> Void, on core: Int, _ second: @escaping () -> Result, on otherCore: Int
  ) throws -> Result {
    let errand = Errand<Void>(core: core, first)
    let thread = try begin(errand)
    defer { pthread_join(thread, nil) }
    return try run(on: otherCore, second)
  }

  /// Starts a thread for an errand, which the caller keeps alive until it has joined the thread.
  private static func begin(_ errand: AnyErrand) throws -> pthread_t {
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        unsafe Unmanaged<AnyErrand>.fromOpaque(argument!).takeUnretainedValue().run()
        return nil
      }, unsafe Unmanaged.passUnretained(errand).toOpaque())
    guard status == 0 else { throw MeasurementProblem("cannot start a thread (error \(status))") }
    return thread
  }

  private class AnyErrand {
    func run() {}
  }

  /// Work for a thread, and what came of it.
  private final class Errand<Result>: AnyErrand {
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
