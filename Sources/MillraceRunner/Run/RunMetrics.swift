internal import MillraceCore
internal import MillraceEngine
internal import MillraceNet
internal import MillraceServer
internal import Synchronization

/// The metrics server of one call of `run`.
final class RunMetrics: Sendable {
  let metrics: EngineMetrics
  /// True when the system chose the port, so that the address must be printed.
  let hasChosenPort: Bool
  /// A line for the user with the address.
  let addressLine: String
  private let server: MetricsServer
  private let isDraining: Draining

  private final class Draining: Sendable {
    let value = Atomic<Bool>(false)
  }

  /// Starts listening. On failure, prints the reason and throws an exit status.
  init(_ engine: Engine, _ address: MetricsAddress, plain: Bool) throws(ExitStatus) {
    let metrics = EngineMetrics(engine)
    let draining = Draining()
    let result = Promise.runBlocking { () async -> Result<MetricsServer, NetError> in
      do throws(NetError) {
        return .success(
          try await MetricsServer.listen(
            metrics, host: address.host, port: address.port, plain: plain,
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
    self.metrics = metrics
    isDraining = draining
    hasChosenPort = address.port == 0
    let host = address.host.contains(":") ? "[\(address.host)]" : address.host
    addressLine = "metrics: http://\(host):\(server.port)/metrics\n"
  }

  /// From now on, `/health` answers that this process accepts no more work.
  func noteDraining() { isDraining.value.store(true, ordering: .relaxed) }

  /// Stops listening. Requests in progress still get their response.
  func stop() {
    let server = server
    Promise.runBlocking { await server.stop() }
  }
}
