import MillraceGraph

/// Feeds any text to the reader of a double's scenario.
///
/// It must never crash. A refusal says where in the file it is and why. What it accepts keeps to the bounds the documentation gives,
/// and is the same however the file is laid out.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzScenario(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  let scenario: BailianScenario
  do throws(ScenarioProblem) { scenario = try BailianScenario(parsing: text, name: "in.json") } catch {
    checkRefusal(error)
    return 0
  }
  checkBounds(of: scenario)
  for pretty in [false, true] {
    do throws(ScenarioProblem) {
      if try BailianScenario(parsing: written(text, pretty: pretty)) != scenario {
        fatalError("another scenario when it is written anew")
      }
    } catch {
      fatalError("none when it is written anew: \(error)")
    }
  }
  return 0
}

private func checkRefusal(_ problem: ScenarioProblem) {
  if problem.description.firstMatch(of: /^in\.json(:[1-9][0-9]*:[1-9][0-9]*)?: error: ./) == nil {
    fatalError("a refusal without words or a place: \(problem)")
  }
  if problem.description.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\n" }) {
    fatalError("a refusal with a control character")
  }
}

private func checkBounds(of scenario: BailianScenario) {
  let isWithin =
    !scenario.turns.isEmpty && (0...1_000).contains(scenario.refusals)
    && (400...599).contains(scenario.refusalStatus) && (0...600_000).contains(scenario.delay)
    && (0.01...1_000).contains(scenario.speed) && (1...1_000_000).contains(scenario.chunk)
  if !isWithin { fatalError("beyond its bounds: \(scenario)") }
  if let place = scenario.fault?.place, place != .connecting, place != .listening {
    fatalError("a fault of a turn before all turns")
  }
  for turn in scenario.turns {
    if !(0...60_000).contains(turn.thinks) { fatalError("it thinks \(turn.thinks) ms") }
    if let place = turn.fault?.place, place == .connecting || place == .listening {
      fatalError("a fault of the beginning in a turn")
    }
  }
}

private func written(_ text: String, pretty: Bool) -> String {
  var json = JSONWriter(pretty: pretty)
  do throws(Problem) {
    json.value(try JSONDocument.scan(SourceFile(name: "in.json", text: text)).root)
  } catch {
    fatalError("a scenario that is no JSON: \(error)")
  }
  return json.text
}
