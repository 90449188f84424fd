public import MillraceCore
public import MillraceDialog

/// Runs a service node against its double, case by case, and holds what comes out against what is true of every service node.
///
/// Each case is a graph of its own on the real clock. Waits end when what they wait for has come; only a wait that is over after
/// `patience` fails a case, so that a busy machine makes it slow and never wrong. The command of the runner is
/// `millrace test-node`.
public struct Conformance: Sendable {
  /// The other side of the node.
  public let double: any ServiceDouble.Type
  /// Has the node's type.
  public let catalogue: Catalogue
  /// Seconds that nothing takes.
  public var patience = 60.0

  /// - Parameters:
  ///   - double: the other side of the node.
  ///   - catalogue: has the node's type.
  public init(_ double: any ServiceDouble.Type, catalogue: Catalogue) {
    self.double = double
    self.catalogue = catalogue
  }

  /// Names of all cases, those that do not fit this service among them.
  public static var names: [String] { ConformanceCase.all.map(\.name) }

  /// The case that measures the heap of the whole process, which has to do nothing else meanwhile.
  public static let memoryCase = ConformanceCase.memory.name

  /// Runs cases, one after the other.
  /// - Parameters:
  ///   - names: which; nil: all.
  ///   - tell: is handed each result as it comes.
  public func run(
    _ names: Set<String>? = nil, tell: (ConformanceResult) -> Void = { _ in }
  ) async -> [ConformanceResult] {
    var results: [ConformanceResult] = []
    for made in ConformanceCase.all where names?.contains(made.name) ?? true {
      let result = await run(made)
      tell(result)
      results.append(result)
    }
    return results
  }

  private func run(_ made: ConformanceCase) async -> ConformanceResult {
    var result = ConformanceResult(name: made.name, expected: made.text)
    if let misfit = made.misfit(double.traits) {
      result.outcome = .leftOut
      result.seen = misfit
      return result
    }
    let start = ContinuousClock.now
    do {
      let rehearsal = try await Rehearsal(double, made.script, catalogue, patience: patience)
      var findings: [String] = []
      do { try await made.play(rehearsal) } catch {
        findings.append((error as? Mismatch)?.text ?? "\(error)")
      }
      let record = await rehearsal.close()
      var expectation = CaseExpectation(double.traits)
      made.expect(&expectation)
      // A record whose beginning was let go of is not looked at; nor one whose case did not come to its end.
      if made.name != Self.memoryCase && findings.isEmpty {
        findings += Self.findings(record, expectation)
      }
      result.seen = record.description
      result.findings = findings
    } catch {
      result.findings = [(error as? Mismatch)?.text ?? "the double does not start: \(error)"]
    }
    result.outcome = result.findings.isEmpty ? .passed : .failed
    let time = (ContinuousClock.now - start).components
    result.milliseconds = Double(time.seconds) * 1_000 + Double(time.attoseconds) / 1e15
    return result
  }

  /// What is amiss in a record: `invariant: words` each.
  public static func findings(_ record: ServiceRecord, _ expected: CaseExpectation) -> [String] {
    Invariant.all.flatMap { invariant in
      invariant.findings(record, expected).map { "\(invariant.name): \($0)" }
    }
  }
}

/// What came of one case.
public struct ConformanceResult: Sendable, Hashable {
  /// What became of a case.
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    /// Nothing was amiss, or something was: `findings` says what.
    case passed, failed
    /// The case does not fit the service; `seen` says why.
    case leftOut
  }

  /// The case, such as `drop at midway`.
  public var name: String
  /// What had to come of it.
  public var expected: String
  /// The states, and what else came.
  public var seen = ""
  /// How long it took.
  public var milliseconds = 0.0
  /// What became of it.
  public var outcome = Outcome.leftOut
  /// What was amiss.
  public var findings: [String] = []

  /// A case that has not been run.
  public init(name: String, expected: String) {
    self.name = name
    self.expected = expected
  }

  /// One JSON object.
  public var json: JSONValue {
    [
      "case": .string(name), "expected": .string(expected), "seen": .string(seen),
      "ms": .double((milliseconds * 10).rounded() / 10), "outcome": .string(outcome.rawValue),
      "findings": .array(findings.map { .string($0) }),
    ]
  }
}
