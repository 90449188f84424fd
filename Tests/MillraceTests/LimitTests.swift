import Foundation
import MillraceBailianDouble
import Testing

/// Errors of the system, a program or a service are reported to the user with a message and an exit status.
@Suite("Limits and refusals", .timeLimit(.minutes(30)))
struct LimitTests {
  private let scratch = Scratch()

  private func write(_ graph: String, _ name: String = "graph.json") throws -> String {
    try scratch.write(Array(graph.utf8), to: name)
  }

  private var toneToNothing: String {
    #"""
    {
      "millrace": 1, "name": "hum",
      "nodes": { "hum": { "type": "audio.tone", "rate": 16000 }, "end": { "type": "flow.null" } },
      "links": ["hum -> end"]
    }
    """#
  }

  @Test("with any limit of open files, the program runs or reports why not, and does not crash")
  func openFiles() throws {
    let graph = try write(toneToNothing)
    var refused = 0
    for limit in 5...24 {
      let result = try RunnerProcess.run(
        "run", graph, "--clock", "virtual", "--duration", "1s", in: scratch,
        shell: "ulimit -c 0; ulimit -n \(limit); exec \"$@\"")
      #expect([0, 1].contains(result.status), "\(limit) files: \(result.status) \(result.errors)")
      if result.status == 1 {
        refused += 1
        #expect(result.errors.contains(" of \(limit) (ulimit -n) are in use"))
        #expect(result.errors.contains("; raise the limit, or run fewer instances"))
      }
    }
    #expect((1..<20).contains(refused), "\(refused)")
  }

  @Test("instances that do not fit into memory are rejected with a message, and earlier ones are released")
  func memory() throws {
    let graph = try write(toneToNothing)
    let result = try RunnerProcess.run(
      "run", graph, "--quiet", "--instances", "20000", "--duration", "1s", in: scratch,
      shell: "ulimit -c 0; ulimit -v 1000000; exec \"$@\"")
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.problems.count == 1, "\(result.errors)")
    #expect(
      result.problems.first?.hasPrefix("error: not enough memory for instance ") == true, "\(result.errors)")
    #expect(
      result.problems.first?.hasSuffix("; run fewer instances, or raise the limit") == true,
      "\(result.errors)")
  }

  @Test(
    "a number of instances that can never fit is rejected early")
  func hopeless() throws {
    let graph = try write(
      #"""
      {
        "millrace": 1, "name": "hum", "parameters": { "output": {} },
        "nodes": {
          "hum": { "type": "audio.tone", "rate": 48000, "frame": 60 },
          "out": { "type": "audio.write", "path": "${output}" }
        },
        "links": [{ "from": "hum", "to": "out", "capacity": 100 }]
      }
      """#)
    for (limit, memory, start, end) in [
      (
        "true", "1GiB",
        "error: 100000 runs can use 84.6 GiB, each 886.9 KiB, but the limit is 1 GiB; largest: link ",
        "; reduce capacities or packet sizes, run fewer graphs at once, or raise the memory limit"
      ),
      (
        "ulimit -n 300", "1TiB",
        "error: 100000 instances need too many open files: ",
        " of 300 (ulimit -n) are in use with 9 instances, and each opens 2; raise the limit, or run fewer instances"
      ),
      (
        "ulimit -v 1500000", "1TiB",
        "error: not enough memory for 100000 instances: the process already uses ",
        " for media; run fewer instances, or raise the limit"
      ),
    ] {
      let result = try RunnerProcess.run(
        "run", graph, "--quiet", "--instances", "100000", "--set",
        "output=\(scratch.file("out")){instance}.wav", "--duration", "1s", "--memory", memory,
        in: scratch, shell: "ulimit -c 0; \(limit); exec \"$@\"")
      #expect(result.status == 1, "\(result.errors)")
      #expect(result.problems.count == 1, "\(result.errors)")
      let line = result.problems.first ?? ""
      #expect(line.hasPrefix(start) && line.hasSuffix(end), "\(line)")
    }
  }

  @Test("a program that reads nothing does not block the end of the graph, whatever is queued before it")
  func deafProgram() throws {
    let graph = try write(
      #"""
      {
        "millrace": 1, "name": "deaf",
        "nodes": {
          "hum": { "type": "audio.tone", "rate": 48000 },
          "to16k": { "type": "audio.resample", "rate": 16000 },
          "deaf": { "type": "process.pipe", "command": ["sleep", "1000"], "endStall": 200 },
          "end": { "type": "flow.null" }
        },
        "links": ["hum -> to16k -> deaf -> end"]
      }
      """#)
    let result = try RunnerProcess.run(
      "run", graph, "--quiet", "--clock", "realtime", "--duration", "500ms", in: scratch)
    #expect(result.status == 3, "\(result.errors)")
    #expect(result.problems.count == 1)
    let line = result.problems.first ?? ""
    #expect(line.contains("the program \"sleep\" neither read nor wrote anything for "), "\(line)")
    #expect(
      line.hasSuffix(
        " ms while the graph was ending; make it exit at the end of its input, or raise \"endStall\""
      ), "\(line)")
  }

  @Test("a service that rejects the key causes exit status 4, also when its node is only isolated")
  func wrongKey() async throws {
    var scenario = BailianScenario()
    scenario.keys = ["sk-right"]
    let double = try await BailianDouble.listen(scenario)
    defer { double.stop() }
    for (name, onError) in [("stop", ""), ("isolate", #""onError": "isolate","#)] {
      let graph = try write(
        #"""
        {
          "millrace": 1, "name": "call",
          "nodes": {
            "hum": { "type": "audio.tone", "rate": 16000, "frame": 20 },
            "bot": {
              "type": "bailian.dialog", \#(onError) "url": "ws://127.0.0.1:\#(double.port)/api-ws/v1/inference",
              "key": "sk-wrong", "workspace": "llm-1", "app": "mm_1", "user": "u1"
            },
            "end": { "type": "flow.null" }
          },
          "links": ["hum -> bot.audio", "bot.audio -> end"]
        }
        """#, "\(name).json")
      let result = try RunnerProcess.run(
        "run", graph, "--quiet", "--clock", "realtime", "--duration", onError.isEmpty ? "60s" : "10s",
        in: scratch)
      #expect(result.status == 4, "\(result.status) \(result.errors)")
      #expect(result.errors.contains("auth 401 refused"), "\(result.errors)")
      #expect(!result.errors.contains("sk-wrong"))
    }
  }
}
