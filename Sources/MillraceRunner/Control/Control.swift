internal import ArgumentParser
internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// What `run` takes to be controlled.
struct ControlOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Take commands, one JSON object a line, from a named pipe or a file; - is standard input.",
      valueName: "file"), completion: .file())
  var control: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Answer commands in a file or named pipe, or with - on standard output; without it, on standard error.",
      valueName: "file"), completion: .file())
  var controlAnswers: String?

  func validate() throws {
    if controlAnswers != nil && control == nil {
      throw ValidationError("--control-answers answers the commands of --control: give that, too.")
    }
  }
}

/// Control of runs by lines of JSON: reads commands, carries them out, answers each.
///
/// A file, and on a virtual clock standard input, is read to its end before anything starts, so that the same commands give
/// the same run. Everything else is read by a thread of its own while the graphs run.
final class Control {
  private var input: ControlInput?
  /// A file that has been read. Still claimed: nothing the run writes may take the place of its commands.
  private var spent: ControlInput?
  private let answers: ControlAnswers
  private let wake = WakeSignal()
  private var desk: ControlDesk?

  /// Milliseconds between two looks at the signals while commands are read before the start.
  private static let tick: Int32 = 50

  /// Opens both ends. Never waits for whoever is at the other one.
  init(_ options: ControlOptions) throws {
    let input = try ControlInput(options.control ?? "-")
    answers = try ControlAnswers(options.controlAnswers)
    try answers.refuse(asCommandsOf: input)
    self.input = consume input
  }

  /// True when answers appear among what the runner tells.
  var answersOnError: Bool { answers.isStandardError }

  /// A golden run is told everything before it starts.
  func refuseLive() throws {
    guard input?.isFile == false && input?.isStandardInput == false else { return }
    Output.error.write(
      "error: golden runs take commands from a file or from standard input, which are read before the start; name one\n"
    )
    throw ExitStatus.usage
  }

  /// Takes what has to be known before the start.
  /// - Parameter targets: every run there will be.
  /// - Throws: `ExitStatus.interrupted` when the process was asked to end meanwhile.
  func prepare(_ targets: [ControlErrand.Target], clock: Clock.Kind) throws {
    answers.begin()
    let desk = ControlDesk(targets, answers: answers)
    self.desk = desk
    guard var input = input.take() else { return }
    guard input.isFile || (input.isStandardInput && clock == .virtual) else {
      self.input = consume input
      return
    }
    var lines = LineSplitter()
    while !Signals.isAskedToEnd {
      guard Self.hand(input.next(timeout: Self.tick), &lines, to: desk) else {
        spent = consume input
        return
      }
    }
    throw ExitStatus.interrupted
  }

  /// The runs have begun: reads on, if there may be more.
  func start() {
    guard let desk else { return }
    desk.start()
    guard let input = input.take() else { return }
    let (box, wake) = (InputBox(input), wake)
    let refusal = DetachedThread.start("millrace-ctl") {
      guard var input = box.take() else { return }
      var lines = LineSplitter()
      while Self.hand(input.next(timeout: -1, wake: wake.descriptor), &lines, to: desk) {}
    }
    if refusal != 0 {
      Output.error.write(
        "error: no commands are read: \(SystemError.text(refusal)); end some other program\n")
    }
  }

  /// The runs have ended: refuses commands that still waited for their time, completes the files of taps. Answers what went
  /// wrong, in words.
  func finish() -> [String] {
    wake.give()
    desk?.close()
    return answers.lost.remarks + (desk?.finishRecordings() ?? [])
  }

  /// False when nothing more will come.
  private static func hand(_ piece: ControlInput.Piece, _ lines: inout LineSplitter, to desk: ControlDesk)
    -> Bool
  {
    switch piece {
    case .bytes(let bytes): for line in lines.add(bytes) { desk.take(line) }
    case .timeout: break
    case .pause, .end: if let line = lines.end() { desk.take(line) }
    }
    if case .end = piece { return false }
    return true
  }
}

/// Ends another thread's wait in `poll`: a pair of sockets, one of which gets a byte.
private final class WakeSignal: Sendable {
  /// To be waited for.
  let descriptor: Int32
  private let far: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    _ = unsafe socketpair(AF_UNIX, Int32(kind), 0, &ends)
    (descriptor, far) = (ends[0], ends[1])
  }

  deinit {
    close(descriptor)
    close(far)
  }

  func give() {
    var byte: UInt8 = 1
    _ = unsafe write(far, &byte, 1)
  }
}

/// Carries an input to its thread.
private final class InputBox: @unchecked Sendable {
  private var input: ControlInput?
  init(_ input: consuming ControlInput) { self.input = consume input }
  func take() -> ControlInput? { input.take() }
}
