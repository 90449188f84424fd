internal import ArgumentParser
internal import MillraceServer

/// The address of the metrics server: `9464`, `127.0.0.1:9464`, `[::1]:9464`; port 0 for any free port.
struct MetricsAddress: ExpressibleByArgument, Equatable {
  let host: String
  let port: Int

  init?(argument: String) {
    let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
    guard let last = parts.last, let port = Int(last), (0...65_535).contains(port) else { return nil }
    self.port = port
    let host = argument.dropLast(last.count)
    guard !host.isEmpty else {
      self.host = "127.0.0.1"
      return
    }
    guard host.count > 1 else { return nil }
    let name = String(host.dropLast())
    let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
    guard isBracketed || !name.contains(":") else { return nil }
    self.host = isBracketed ? String(name.dropFirst().dropLast()) : name
  }
}

/// Options for observing a run from outside.
struct ObservingOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics; 0 to 65535, 0 for any free port.",
      discussion:
        "The usual port is \(MetricsServer.defaultPort). HOST:PORT listens on another address of this machine.",
      valueName: "port"))
  var metrics: MetricsAddress?

  @Flag(
    name: .long,
    help: "Allow a metrics address that other machines can reach; the page is sent unencrypted.")
  var metricsPlain = false

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Write the turns of the dialogue to a file, as OpenTelemetry JSON; - for standard output.",
      valueName: "file"),
    completion: .file(extensions: ["json"]))
  var otel: String?

  func validate() throws {
    if metricsPlain && metrics == nil {
      throw ValidationError("--metrics-plain needs --metrics")
    }
  }
}
