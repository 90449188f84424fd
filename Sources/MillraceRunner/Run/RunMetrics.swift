internal import Dispatch
internal import MillraceEngine
internal import MillraceNet
internal import MillraceServer
internal import Synchronization

/// The page of metrics of one call of `run`.
final class RunMetrics: Sendable {
  let figures: RunFigures
  /// The system chose the port: the user has to be told.
  let hasChosenPort: Bool
  /// Where it is, as a line for the user.
  let place: String
  private let server: MetricsServer
  private let isDraining: Draining

  private final class Draining: Sendable {
    let value = Atomic<Bool>(false)
  }

  /// Starts to listen. Throws an exit status when that cannot be; why is on standard error then.
  init(_ engine: Engine, _ address: MetricsAddress, plain: Bool) throws(ExitStatus) {
    let figures = RunFigures(engine)
    let draining = Draining()
    let result = Blocking.wait { () async -> Result<MetricsServer, NetError> in
      do throws(NetError) {
        return .success(
          try await MetricsServer.listen(
            figures: figures, host: address.host, port: address.port, plain: plain,
            isHealthy: { !draining.value.load(ordering: .relaxed) }))
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .failure(let problem):
      let cure = problem.kind == .address && !plain ? " (--metrics-plain)" : "; choose another port"
      Output.error.write("error: --metrics: \(problem)\(cure)\n")
      throw .usage
    case .success(let server): self.server = server
    }
    self.figures = figures
    isDraining = draining
    hasChosenPort = address.port == 0
    let host = address.host.contains(":") ? "[\(address.host)]" : address.host
    place = "metrics: http://\(host):\(server.port)/metrics\n"
  }

  /// From now on `/health` says that this process takes no more work.
  func noteDraining() { isDraining.value.store(true, ordering: .relaxed) }

  /// Stops to listen. Requests under way get their response.
  func stop() {
    let server = server
    Blocking.wait { await server.stop() }
  }
}

/// Waits in a thread for what a task does. Not from a task.
enum Blocking {
  private final class Box<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
  }

  @discardableResult
  static func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
    let box = Box<Value>()
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      let value = await work()
      box.value.withLock { $0 = value }
      done.signal()
    }
    while true {
      done.wait()
      if let value = box.value.withLock({ $0 }) { return value }
    }
  }
}
