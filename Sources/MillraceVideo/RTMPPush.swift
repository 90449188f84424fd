internal import MillraceAudio
public import MillraceCore

/// `rtmp.push`: sends pictures, and audio if linked, to an RTMP server.
///
/// - Input `in`: raw pictures of any pixel type and size. Input `audio`: s16 or f32, mono or stereo, at a rate that AAC supports. Times,
///   gaps and odd sizes are handled as in `video.record`.
/// - Input `address`: where to send from now on, as text or as a service's event. Every address gets a stream of its own, which begins
///   with a key frame at time 0; the present stream ends, and what it has queued is still sent, for the last four of them. The same address
///   changes nothing, unless its stream has failed. Without an address the inputs are discarded. What arrives there is a secret of the
///   graph before anything is reported; a text that is no address is an `error`, and the node continues. A node that is restarted after a
///   fault (`onError`) begins with `url`, or waits: send the address again on `nodeRestarted`.
/// - Input `sei`: messages for pictures, H.264's user data. Each goes with the first picture that is due at its time or later, and stays in
///   step with it however late the stream is; `rtmp.pull` reports them.
/// - Encodes in its calls; connects and sends on its own thread. Without a connection, or with a slow one, `queue` of the stream waits;
///   then the oldest data is dropped, up to the next key frame (`dropped`). The stream keeps its own timestamps, so that a player sees how
///   long it was gone; each connection starts with a key frame at time 0.
/// - A server that cannot be reached, refuses the stream, or does not answer for `timeout` is reported (`refused`, `lost`) and retried with
///   backoff. Without `reconnect`, or after `giveUp`, that is the end of the stream: it fails the node, or with `address` linked the node
///   waits for another address.
/// - At the end of its inputs the queue is sent; without a connection for `timeout` it is dropped (`dropped`). Stopping never blocks.
/// - With `rtmps:` a certificate that is not trusted is treated like a server that refuses.
/// - The address and its key are never shown.
/// - Latency: a picture is sent when it is encoded and the audio up to its time has arrived, about 50 ms; without audio at once.
/// - Real-time clock only; faster input is dropped. Bulk lane: 10 ms for a picture of 1280x720. Allocates.
@safe
public struct RTMPPush: ~Copyable, Node {
  private let input: StreamAddressInput
  private let messages: UserDataInput
  private let values: ParameterValues
  private let inputs: [NodeSetup.Port]
  private let waker: Waker
  private(set) var stream: PushedStream?
  /// Streams that are still sending what they have queued, the oldest first.
  private var closing: [PushedStream] = []
  /// Most of them; of more, the oldest is abandoned.
  private static let mostClosing = 4
  private let words = LastWords()

  /// Which stream failed, and why; kept for `explain`.
  private final class LastWords {
    var name = "that was pushed"
    var text: String?
    var encoding: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard !setup.isVirtual else {
      throw NodeProblem(
        "a live stream cannot follow a virtual clock", cure: "run the graph on the real-time clock")
    }
    let values = setup.parameters
    let address = try StreamAddress.given(in: values)
    try StreamAddress.checkRoots(values)
    let (inputs, waker) = (setup.inputs, setup.waker)
    let stream = try address.map { address throws(NodeProblem) in
      try PushedStream(address, values, inputs, waker: waker)
    }
    // Nothing below may throw.
    input = StreamAddressInput(setup, input: 2)
    messages = UserDataInput(setup, input: 3)
    self.values = values
    self.inputs = inputs
    self.waker = waker
    self.stream = stream
    if let address { words.name = address.name }
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if input.isLinked { try follow(input.take(&ports), &ports) }
    if messages.isLinked { takeMessages(&ports) }
    // Without pictures and audio there is nothing to wait for at the inputs `address` and `sei`.
    if ports.isOver(0) && ports.isOver(1) && (input.isLinked || messages.isLinked) {
      return try finish(&ports)
    }
    let isFollowing = input.isLinked
    closing.removeAll { stream in
      guard stream.finish(&ports) else { return false }
      Self.conclude(stream, isFollowing: isFollowing, &ports)
      return true
    }
    var wake = closing.isEmpty ? Nanoseconds.max : ports.now + Self.look
    if let stream {
      if try keepingWords(stream, { () throws(NodeFault) in try stream.take(&ports) }) {
        wake = min(wake, stream.encoder.nextExpiry(after: ports.now) ?? .max)
      } else {
        try fail(stream, &ports)
        discard(&ports)
      }
    } else {
      discard(&ports)
    }
    if wake != .max { ports.wake(at: wake) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if input.isLinked { try follow(input.take(&ports), &ports) }
    if let stream {
      self.stream = nil
      try close(stream, &ports)
    }
    for stream in closing where stream.finish(&ports) {
      if let ending = stream.ending {
        words.text = ending
        guard input.isLinked else { throw NodeFault(.gone) }
      }
      Self.conclude(stream, isFollowing: input.isLinked, &ports)
      closing.removeAll { $0 === stream }
    }
    guard !closing.isEmpty else { return .ended }
    // The thread wakes the node for the next event.
    ports.wake(at: ports.now + Self.look)
    return .again
  }

  /// How often a stream that ends is looked after: its wait for a connection is limited.
  private static let look = Nanoseconds.milliseconds(50)

  /// A stream has failed for good.
  private mutating func fail(_ stream: PushedStream, _ ports: inout Ports) throws(NodeFault) {
    words.text = stream.ending
    guard input.isLinked else { throw NodeFault(.gone) }
    self.stream = nil
    Self.postLost(&ports)
  }

  /// Posts how a stream ended: with addresses that come while the graph runs, one that found no connection is lost.
  private static func conclude(_ stream: PushedStream, isFollowing: Bool, _ ports: inout Ports) {
    if stream.ending != nil || stream.isAbandoned && isFollowing {
      postLost(&ports)
    } else {
      stream.complete(&ports)
    }
  }

  /// A stream is over before all of it was sent.
  private static func postLost(_ ports: inout Ports) {
    ports.post(Event.ended.rawValue) { $0.field("why", "lost") }
  }

  /// Passes messages on to the stream's next pictures; without a stream they are discarded, as pictures are.
  private func takeMessages(_ ports: inout Ports) {
    let taken = messages.take(&ports)
    for problem in taken.problems { ports.post(problem, as: Event.error.rawValue) }
    guard let stream else { return }
    let refused = taken.messages.count { !stream.add($0.message, at: $0.time) }
    if refused > 0 {
      let problem = NodeProblem(
        "\(refused) messages for pictures were dropped: \(PictureEncoder.mostMessages) wait already",
        cure: "send at most \(UserData.mostOfPicture) with each picture")
      ports.post(problem, as: Event.error.rawValue)
    }
  }

  /// Discards what is for no stream.
  private func discard(_ ports: inout Ports) {
    for input in 0..<2 { while ports.next(input) != nil {} }
  }

  /// Keeps the encoder's message if a call fails.
  private func keepingWords<Value>(
    _ stream: PushedStream, _ body: () throws(NodeFault) -> Value
  ) throws(NodeFault) -> Value {
    do { return try body() } catch {
      words.encoding = stream.encoder.words
      throw error
    }
  }

  // MARK: Addresses

  private mutating func follow(
    _ requests: StreamAddressInput.Requests, _ ports: inout Ports
  ) throws(NodeFault) {
    for problem in requests.problems { ports.post(problem, as: Event.error.rawValue) }
    switch requests.change {
    case .none: return
    case .end: try leave("stopped", &ports)
    case .begin(let address, let restarts):
      if restarts { try leave("stopped", &ports) }
      if let stream, stream.address.url == address.url { return }
      let next: PushedStream
      // Until the next stream has begun, the present one can continue.
      do throws(NodeProblem) { next = try PushedStream(address, values, inputs, waker: waker) } catch {
        return ports.post(error, as: Event.error.rawValue)
      }
      try leave("replaced", &ports)
      stream = next
      words.name = address.name
    }
  }

  private mutating func leave(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    guard let stream else { return }
    self.stream = nil
    try close(stream, &ports)
    ports.post(Event.ended.rawValue) { $0.field("why", reason) }
  }

  /// Takes no more for a stream; what it has queued is sent.
  private mutating func close(_ stream: PushedStream, _ ports: inout Ports) throws(NodeFault) {
    try keepingWords(stream) { () throws(NodeFault) in try stream.close(&ports) }
    closing.append(stream)
    guard closing.count > Self.mostClosing else { return }
    let oldest = closing.removeFirst()
    if oldest.finish(&ports) {
      Self.conclude(oldest, isFollowing: input.isLinked, &ports)
    } else {
      Self.postLost(&ports)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost the stream \(words.name): \(words.text ?? "the connection was lost")"
    case .library:
      "cannot encode for \(words.name): \(words.encoding ?? LibraryMessage.describe(fault.code)); "
        + "scale the pictures with video.scale"
    default: nil
    }
  }
}
