internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceNet
internal import Synchronization

/// Makes a JPEG under a budget of any picture that libavformat reads, by the nodes a graph would use, on a thread beside the
/// dialogue.
final class TalkPicture: Sendable {
  /// Why there is none, in words.
  struct Refusal: Error, Equatable {
    var text: String
  }

  /// Longest time it may take: a picture of 64 million pixels takes a second or two.
  private static let patience: Nanoseconds = .milliseconds(30_000)
  /// A film shows itself by a second picture within this much of it.
  private static let glance: Nanoseconds = .milliseconds(400)

  /// What was typed for it.
  let words: String
  private let result = Mutex<Result<String, Refusal>?>(nil)
  /// Where it is being made.
  private let workPlace = Mutex<String?>(nil)

  /// Base64 of the JPEG, or why not; nil while it is being made.
  var outcome: Result<String, Refusal>? { result.withLock { $0 } }

  /// Begins.
  /// - Parameter budget: characters the Base64 text may have.
  init(of path: String, words: String, budget: Int) {
    self.words = words
    let refusal = DetachedThread.start("millrace-image") { [self] in
      let made: Result<String, Refusal>
      do throws(Refusal) {
        made = .success(try Self.make(path, budget) { place in workPlace.withLock { $0 = place } })
      } catch {
        made = .failure(error)
      }
      result.withLock { $0 = made }
    }
    if refusal != 0 {
      let text = "no thread for the picture: \(SystemError.text(refusal)); end some other program"
      result.withLock { $0 = .failure(Refusal(text: text)) }
    }
  }

  /// Removes what a picture that is still being made has left on the disk.
  func cleanUp() { workPlace.withLock { if let place = $0 { Self.remove(place) } } }

  private static func remove(_ folder: String) {
    _ = unsafe unlink(target(in: folder))
    _ = unsafe rmdir(folder)
  }

  private static func target(in folder: String) -> String { folder + "/picture.jpg" }

  /// - Parameter works: told of the folder it is made in, which is removed in the end.
  static func make(_ path: String, _ budget: Int, works: (String) -> Void = { _ in }) throws(Refusal)
    -> String
  {
    let path = path.hasPrefix("~/") ? (Environment.value("HOME") ?? "~") + path.dropFirst() : path
    let name = Problem.quoted(path)
    switch FileKind(path: path) {
    case .regular: break
    case .missing: throw Refusal(text: "there is no picture \(name); name a file that is there")
    case .folder: throw Refusal(text: "\(name) is a folder; name a picture in it")
    case .pipe: throw Refusal(text: "\(name) is a pipe, which may never end; name a file")
    case .other: throw Refusal(text: "\(name) is a device or a socket; name a file")
    }
    var template = Array("\(Environment.value("TMPDIR") ?? "/tmp")/millrace-image-XXXXXX".utf8CString)
    let folder = unsafe template.withUnsafeMutableBufferPointer { pointer -> String? in
      unsafe mkdtemp(pointer.baseAddress!).map { unsafe String(cString: $0) }
    }
    guard let folder else {
      throw Refusal(text: "no place for the picture: \(SystemError.text(errno)); make room, or set TMPDIR")
    }
    works(folder)
    let target = target(in: folder)
    defer { remove(folder) }
    try run(path, target, budget)
    do {
      return Base64.encode(try SourceFile.read(path: target).bytes)
    } catch {
      throw Refusal(text: "\(name) has no picture in it that could be shown")
    }
  }

  /// What a node says of the file, which it may name itself.
  private static func refused(_ name: String, _ text: String) -> Refusal {
    let what = text.hasPrefix(name) ? text : "\(name) cannot be shown: \(text)"
    return Refusal(text: "\(what); name a picture, such as a JPEG or PNG")
  }

  /// On the virtual clock, so that a film is not waited for.
  private static func run(_ path: String, _ target: String, _ budget: Int) throws(Refusal) {
    let name = Problem.quoted(path)
    var graph = GraphDescription("picture")
    graph.add("file", "video.read", ["path": .string(path), "pace": true])
    graph.add("eye", "video.sample", ["maxBytes": .integer(budget), "count": "base64"])
    graph.add("out", "image.write", ["path": .string(target)])
    graph.link("file -> eye -> out")
    let run: GraphRun
    do {
      let plan = try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: .standard)
      run = try Engine(catalogue: .standard, clock: .virtual, workers: 1).prepare(plan)
    } catch let problem as StartProblem {
      throw refused(name, problem.text)
    } catch let problems as Problems {
      throw refused(name, problems.sorted.first?.text ?? "it is no picture")
    } catch {
      throw refused(name, "\(error)")
    }
    run.drain(at: .nanoseconds(glance))
    run.start()
    guard let report = run.waitUntilStopped(timeout: .nanoseconds(patience)) else {
      run.stop()
      throw Refusal(text: "\(name) took too long to read; make it smaller")
    }
    if let failure = report.failure { throw refused(name, failure.text) }
    let pictures = report.nodes.first { $0.name == "file" }?.packetsOut ?? 0
    guard pictures <= 1 else {
      throw Refusal(
        text: "\(name) is a film; name a picture, or run a graph that shows films (bailian-live-video.json)")
    }
  }
}
