internal import ArgumentParser

/// What `run` takes for golden runs.
struct GoldenOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Keep what the run writes, posts and counts in a folder, as what later runs are compared with.",
      valueName: "folder"), completion: .directory)
  var recordGolden: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Compare the run with what --record-golden kept; status 5 when they differ.", valueName: "folder"),
    completion: .directory)
  var compare: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Sound may differ from the golden run's by noise this far below it, in dB.", valueName: "dB"))
  var minSnr: Double?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "No sample may differ by more than this, as a part of full scale (one step of 16 bits is 0.00003052).",
      valueName: "part"))
  var maxDifference: Double?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Numbers in events and in files of JSON lines may differ by this much.", valueName: "amount"))
  var numberTolerance: Double?

  /// True when the run is recorded or compared.
  var isGolden: Bool { recordGolden != nil || compare != nil }

  var tolerance: GoldenTolerance {
    GoldenTolerance(signalToNoise: minSnr, sample: maxDifference, number: numberTolerance ?? 0)
  }

  func validate() throws {
    if recordGolden != nil && compare != nil {
      throw ValidationError("--record-golden and --compare exclude each other: record once, then compare.")
    }
    // Without a name its files would come to lie at the root of the file system.
    if recordGolden == "" || compare == "" {
      throw ValidationError(
        "--record-golden and --compare take the name of a folder; the current one is \".\".")
    }
    let hasTolerance = minSnr != nil || maxDifference != nil || numberTolerance != nil
    if hasTolerance && compare == nil {
      throw ValidationError("--min-snr, --max-difference and --number-tolerance belong to --compare.")
    }
    for value in [maxDifference, numberTolerance] {
      if let value, !(value >= 0 && value.isFinite) {
        throw ValidationError("a tolerance is a number from 0 up.")
      }
    }
    if let minSnr, !minSnr.isFinite { throw ValidationError("--min-snr takes a number of dB.") }
  }
}

/// How far a run may be from its golden run, where floating point depends on the processor.
struct GoldenTolerance {
  /// Least ratio of a golden sound to its difference, in dB; nil: not asked for.
  var signalToNoise: Double?
  /// Largest difference of a sample, full scale being 1; nil: not asked for.
  var sample: Double?
  /// Largest difference of a number in an event.
  var number: Double = 0

  /// True when sound need not be the same byte for byte.
  var allowsSound: Bool { signalToNoise != nil || sample != nil }
}
