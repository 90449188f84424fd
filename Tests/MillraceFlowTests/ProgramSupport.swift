import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting

/// Seconds no test should ever need: a hanging program then fails the test instead of stopping the suite.
let programLimit = 300.0

/// A bench around a program, on the real-time clock. A node without output for 10 s fails as stalled.
func programBench(
  _ command: [String], _ more: [String: ParameterValue] = [:], in input: OutputShape? = speech,
  outputs: [String]? = nil, outputLimit: Int = 8
) throws -> NodeBench {
  var parameters: [String: ParameterValue] = ["command": .list(command.map { .string($0) }), "stall": 10_000]
  parameters.merge(more) { _, new in new }
  return try NodeBench(
    ProcessPipe.self, parameters, inputs: input.map { ["in": $0] } ?? [:], outputs: outputs, clock: .realtime,
    outputLimit: outputLimit)
}

func shell(
  _ script: String, _ more: [String: ParameterValue] = [:], in input: OutputShape? = speech,
  outputs: [String]? = nil
) throws -> NodeBench {
  try programBench(["sh", "-c", script], more, in: input, outputs: outputs)
}

/// The message of the node's failure; nil if it does not fail in time.
func failure(of bench: NodeBench) -> String? {
  do {
    _ = try bench.wait(programLimit) { bench.hasEnded }
    if !bench.hasEnded { try bench.finish() }
    return nil
  } catch { return "\(error)" }
}

/// True once an external condition holds; polls, as nothing announces it.
func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
  let end = Date().addingTimeInterval(programLimit)
  while Date() < end {
    if try condition() { return true }
    usleep(2000)
  }
  return false
}

/// True while a process runs, or is a zombie of ours that should have been reaped. (Other zombies are reaped when their parent gets
/// to it.)
func isAlive(_ process: Int32) -> Bool {
  guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return false }
  let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
  return fields.count > 1 && (fields[0] != "Z" || Int32(fields[1]) == getpid())
}
