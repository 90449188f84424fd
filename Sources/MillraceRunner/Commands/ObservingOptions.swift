internal import ArgumentParser
internal import MillraceServer

/// Where to serve the figures of a run: `9464`, `127.0.0.1:9464`, `[::1]:9464`; port 0 for a free one.
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

/// How others may look at a run.
struct ObservingOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Serve the figures for Prometheus at http://127.0.0.1:PORT/metrics; port 0 chooses a free one.",
      discussion: "Usual is \(MetricsServer.usualPort). With HOST:PORT at another address of this machine.",
      valueName: "port"))
  var metrics: MetricsAddress?

  @Flag(
    name: .long,
    help: "Serve the figures also where other machines can reach them; they are sent in plain text.")
  var metricsPlain = false

  @Option(
    name: .long,
    help: ArgumentHelp("Write the turns of the dialogue as OpenTelemetry JSON.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var otel: String?

  func validate() throws {
    if metricsPlain && metrics == nil {
      throw ValidationError("--metrics-plain is about --metrics: give that, too.")
    }
  }
}
