import Foundation
import Logging
import Millrace
import MillraceNet
import MillraceServer
import ServiceLifecycle

// A server that speaks: GET /say?text=Hello answers with an Ogg Opus file. One graph runs for each request.
//
//   swift run SpeechServer [PORT [METRICS_PORT]]      curl 'http://127.0.0.1:8080/say?text=Hello' -o hello.opus
let ports = CommandLine.arguments.dropFirst().compactMap { Int($0) } + [8_080, MetricsServer.defaultPort]
let logger = Logger(label: "speech-server")
let engine = Engine(catalogue: .standard)
let metrics = EngineMetrics(engine)
let runs = EngineService(
  engine, observers: RunObservers(log: RunLog(logger), metrics: metrics))

/// espeak-ng's voice -> 48 kHz -> Opus -> a file
func plan(_ text: String, _ file: String) throws -> GraphPlan {
  var graph = GraphDescription("say")
  // The text is an argument of the shell, never a part of its script. A WAV header is 44 bytes long.
  graph.add(
    "voice", "process.pipe",
    [
      "command": ["sh", "-c", "espeak-ng --stdout -- \"$0\" | tail -c +45", .string(text)], "rate": 22_050,
      "channels": 1,
    ])
  graph.add("to48k", "audio.resample", ["rate": 48_000])
  graph.add("opus", "opus.encode", ["bitrate": 32_000])
  graph.add("file", "ogg.write", ["path": .string(file)])
  graph.link("voice -> to48k -> opus -> file")
  return try Graph.load(graph, catalogue: .standard)
}

func say(_ text: String) async throws -> [UInt8] {
  let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).opus")
  defer { try? FileManager.default.removeItem(at: file) }
  let report = await (try runs.start(plan(text, file.path))).wait()
  if let failure = report.failure { throw failure }
  return Array(try Data(contentsOf: file))
}

let server = try await HTTPServer.listen(port: ports[0]) { request in
  guard request.path == "/say", let text = request[query: "text"] else {
    return .text("GET /say?text=… is all there is here\n", status: 404)
  }
  guard !text.isEmpty, text.utf8.count <= 1_000 else { return .text("text: 1 to 1000 bytes\n", status: 400) }
  do {
    return HTTPServer.Response(headers: [("Content-Type", "audio/ogg")], body: try await say(text))
  } catch {
    logger.error("cannot speak", metadata: ["error": "\(error)"])
    return .text("the voice failed\n", status: 500)
  }
}
let metricsServer = try await MetricsServer.listen(metrics, port: ports[1])
print("http://127.0.0.1:\(server.port)/say http://127.0.0.1:\(metricsServer.port)/metrics")
// A pipe or a file would otherwise get the line at the end only.
fflush(nil)

/// Ends the server before the runs: a group shuts down its services last to first.
struct Web: Service {
  func run() async throws {
    try await gracefulShutdown()
    await server.stop()
  }
}
try await ServiceGroup(
  services: [metricsServer, runs, Web()], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger
).run()
