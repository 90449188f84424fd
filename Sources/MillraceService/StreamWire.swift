internal import MillraceDialog
public import MillraceNet

/// A byte stream as the wire of a session: one record for each message, and one for each frame of audio.
///
/// - A service that ends its direction of the stream has ended the connection: `closed` is reported at once. Whether its dialogue is over,
///   too, its messages have to say.
/// - A stream that is no sequence of records, for example because one is too long, is ended with an error after which the session
///   reconnects. The records before that place are reported first, wherever the network has cut the stream.
/// - While it is paused, nothing is reported, neither records that had been read already nor the end; `resume` reports them later, never
///   from within the call.
public final class StreamWire: ServiceWire {
  private let stream: ByteStream
  private let reader: StreamReader
  private let record: ([UInt8]) -> [UInt8]

  /// Opens a byte stream. On the event loop.
  /// - Parameters:
  ///   - request: where to connect.
  ///   - loop: owns the stream.
  ///   - framing: of this connection.
  ///   - vendor: of the errors.
  ///   - voice: the record for a frame of the user's audio; by default the frame itself.
  ///   - parse: a record, parsed.
  ///   - receive: called with every event, on the event loop.
  public init<Message: Sendable & Hashable>(
    _ request: ByteStreamRequest, on loop: NetLoop, framing: any RecordFraming, vendor: String,
    voice: @escaping ([UInt8]) -> [UInt8] = { $0 },
    parse: @escaping @Sendable ([UInt8]) -> ServiceEvent<Message>,
    _ receive: @escaping @Sendable (ServiceEvent<Message>) -> Void
  ) {
    let reader = StreamReader(framing) { event in
      switch event {
      case .opened: receive(.opened)
      case .record(let bytes): receive(parse(bytes))
      case .ended(let end): receive(.closed(DialogError(end, vendor: vendor)))
      }
    }
    var request = request
    request.loop = loop
    stream = ByteStream.open(request) { reader.take($0) }
    reader.stream = stream
    self.reader = reader
    record = voice
  }

  public var backlog: Int { stream.backlog }

  /// Sends a record. Returns false when nothing more can be sent: the network is stalled, or the connection has ended.
  public func send(_ content: ServiceContent) -> Bool {
    switch content {
    case .text(let bytes), .binary(let bytes): send(record: bytes)
    }
  }

  public func send(voice frame: [UInt8]) -> Bool { send(record: record(frame)) }

  private func send(record: [UInt8]) -> Bool { stream.send(reader.framing.bytes(of: record)) }

  public func pause() {
    reader.isPaused = true
    stream.pause()
  }

  public func resume() {
    reader.isPaused = false
    stream.loop.run { [reader] in reader.resume() }
  }

  public func close() {
    reader.isOver = true
    stream.close()
  }

  public func cancel() {
    reader.isOver = true
    stream.cancel()
  }
}

/// Reads the records of a byte stream. On its event loop, which is why it may be shared with the stream.
private final class StreamReader: @unchecked Sendable {
  enum Event {
    case opened
    case record([UInt8])
    case ended(ByteStreamEnd)
  }

  var framing: any RecordFraming
  /// The wire holds it, and it holds this reader.
  weak var stream: ByteStream?
  var isPaused = false
  /// The end was reported, or nobody wants to hear of it.
  var isOver = false
  /// Records that arrived with the one that made the session pause.
  private var waiting: ArraySlice<[UInt8]> = []
  /// Why nothing follows those; the stream ends once they were reported.
  private var problem: FramingProblem?
  private let report: (Event) -> Void

  init(_ framing: any RecordFraming, _ report: @escaping (Event) -> Void) {
    self.framing = framing
    self.report = report
  }

  func take(_ event: ByteStreamEvent) {
    guard !isOver else { return }
    switch event {
    case .opened: report(.opened)
    case .bytes(let bytes):
      read(bytes)
      deliver()
    case .drained: break
    case .finished:
      let lost = NetError(.lost, "the service closed the connection in the middle of a record")
      end(ByteStreamEnd(problem: framing.isInRecord ? lost : nil))
      stream?.close()
    case .closed(let end): self.end(end)
    }
  }

  /// Reports the records that wait, and only then lets the stream report more: the end comes behind them.
  func resume() {
    deliver()
    // A record may have made the session pause again.
    if !isPaused && !isOver { stream?.resume() }
  }

  private func read(_ bytes: [UInt8]) {
    guard problem == nil else { return }
    do throws(FramingProblem) {
      var records = try framing.records(in: bytes)
      while !records.isEmpty {
        waiting += records
        records = try framing.records(in: [])
      }
    } catch { problem = error }
  }

  private func deliver() {
    while !isPaused && !isOver, let record = waiting.popFirst() { report(.record(record)) }
    guard !isPaused, !isOver, let problem else { return }
    let kind = problem.isTooLarge ? NetError.Kind.tooLarge : .protocolError
    end(ByteStreamEnd(problem: NetError(kind, problem.text), isLocal: true))
    stream?.cancel()
  }

  private func end(_ end: ByteStreamEnd) {
    isOver = true
    report(.ended(end))
  }
}
