#if Video
  internal import MillraceAudio
  internal import MillraceCore
  internal import MillraceDoubles
  internal import MillraceEngine
  internal import MillraceGraph
  internal import MillraceVideo

  /// The picture and sound of an avatar, published to an RTMP server. Any thread.
  final class AvatarPublisher: Sendable {
    /// What it speaks.
    let voice = AvatarVoice()
    private let run = Locked<Publication>(.opening)

    private enum Publication {
      case opening
      case running(GraphRun)
      case over
    }

    private static let catalogue: Catalogue = {
      var catalogue = Catalogue.videoNodes
      catalogue.add(AvatarNode.self)
      catalogue.add(AudioResample.self)
      return catalogue
    }()
    /// All avatars share the workers.
    private static let engine = Engine(catalogue: catalogue, workers: 1)

    /// Begins to publish, on a thread of its own: opening encoders takes tens of milliseconds.
    /// - Parameters:
    ///   - address: where to, with the stream's name.
    ///   - failed: why it cannot.
    init(
      to address: String, width: Int, height: Int, failed: @escaping @Sendable (String) -> Void
    ) {
      let status = DetachedThread.start("double picture") { [self] in
        do { try begin(address, width: width, height: height) } catch { failed("\(error)") }
      }
      if status != 0 { failed("cannot start a thread") }
    }

    private func begin(_ address: String, width: Int, height: Int) throws {
      var graph = GraphDescription("avatar")
      graph.add(
        "avatar", "double.avatar",
        ["voice": .integer(voice.number), "width": .integer(width), "height": .integer(height)])
      // The codec's frames have 1,024 samples: at 16 kHz that would be 64 ms of delay.
      graph.add("resample", "audio.resample", ["rate": 48_000])
      graph.add(
        "push", "rtmp.push",
        ["url": .string(address), "keyInterval": 1_000, "first": 100, "most": 1_000, "giveUp": 0])
      graph.link("avatar.out -> push.in")
      graph.link("avatar.audio -> resample -> push.audio")
      graph.link("avatar.messages -> push.sei")
      let plan = try Graph.load(graph, catalogue: Self.catalogue)
      let made = try Self.engine.prepare(plan, observesEvents: false)
      let isWanted = run.withLock { run in
        if case .over = run { return false }
        run = .running(made)
        return true
      }
      if isWanted { made.start() } else { made.stop() }
    }

    /// Ends the stream.
    func stop() {
      voice.close()
      let made = run.withLock { run in
        defer { run = .over }
        if case .running(let made) = run { return made as GraphRun? }
        return nil
      }
      made?.stop()
    }
  }
#else
  internal import MillraceDoubles

  /// Without the trait `Video` an avatar has no picture.
  final class AvatarPublisher: Sendable {
    let voice = AvatarVoice()

    init(to address: String, width: Int, height: Int, failed: @escaping @Sendable (String) -> Void) {
      failed("this build has no pictures; build it with the trait Video")
    }

    func stop() { voice.close() }
  }
#endif
