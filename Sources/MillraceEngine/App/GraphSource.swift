public import MillraceCore

/// Sends sound, encoded packets, pictures, text and events into a graph, without a custom node.
///
/// ```swift
/// let mic = try run.source("mic")
/// try await mic.send(samples)        // [Int16] of any length
/// mic.finish()
/// ```
///
/// PCM is split into packets of the node's `frame`; a remainder waits for the next send or for `finish()`. An mp3 or ogg send is
/// split into packets of at most `maxBytes`; in every other format one send is one packet. Positions count all samples sent,
/// including those dropped. The node emits queued packets as its graph takes them.
///
/// Any thread; copies refer to the same source. Concurrent sends are serialized, each as a whole. A send copies its data and takes
/// a lock that only the program's side uses. It does *not* convert: samples must have the type of the source's `sample`.
public struct GraphSource: Sendable {
  private let channel: SourceChannel

  init(_ channel: SourceChannel) { self.channel = channel }

  /// The format of its packets.
  public var format: Format { channel.format }

  /// The name of its node.
  public var node: String { channel.node }

  /// Packets dropped since the run was prepared because the queue was full. Any thread.
  public var droppedCount: Int { channel.droppedCount }

  // MARK: Sending, with back-pressure

  /// Sends interleaved samples to an s16 PCM source. Waits while the queue is full, unless the node has `"whenFull": "dropNewest"`.
  /// - Parameters:
  ///   - samples: any number of samples; a frame (one sample per channel) may be split between two sends.
  ///   - endsUtterance: ends the utterance: the remainder is sent at once as a shorter packet marked `endOfUtterance`.
  /// - Throws: when the format does not match, or when the source, the run or the task has ended.
  nonisolated(nonsending) public func send(
    _ samples: [Int16], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(samples, .int16, ends: endsUtterance)
  }

  /// Sends interleaved samples to an f32 PCM source; full scale is -1 to 1. Otherwise as for `[Int16]`.
  nonisolated(nonsending) public func send(
    _ samples: [Float], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(samples, .float, ends: endsUtterance)
  }

  /// Sends an Opus packet, an AAC frame, a JPEG or PNG picture, or a section of an MP3 or Ogg stream.
  /// - Throws: as for samples; `tooLarge` for a packet of more than `maxBytes`.
  nonisolated(nonsending) public func send(
    _ bytes: [UInt8], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(bytes, .bytes, ends: endsUtterance)
  }

  /// Sends text, or an event as one JSON object.
  nonisolated(nonsending) public func send(
    _ text: String, endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(Array(text.utf8), .text, ends: endsUtterance)
  }

  // MARK: Sending without waiting

  /// Sends interleaved samples to an s16 PCM source without waiting. What does not fit is dropped and counted; the packet after
  /// the gap keeps its timestamp and is marked `discontinuity`. For threads that must not block, such as an audio callback.
  @discardableResult
  public func trySend(_ samples: Span<Int16>, endsUtterance: Bool = false) throws(SourceProblem) -> SendResult
  {
    try unsafe samples.withUnsafeBytes { (bytes) throws(SourceProblem) in
      try unsafe channel.trySend(bytes, .int16, ends: endsUtterance)
    }
  }

  /// Sends interleaved samples to an f32 PCM source without waiting. Otherwise as for `Int16`.
  @discardableResult
  public func trySend(_ samples: Span<Float>, endsUtterance: Bool = false) throws(SourceProblem) -> SendResult
  {
    try unsafe samples.withUnsafeBytes { (bytes) throws(SourceProblem) in
      try unsafe channel.trySend(bytes, .float, ends: endsUtterance)
    }
  }

  /// Sends encoded sound or a picture without waiting.
  @discardableResult
  public func trySend(_ bytes: Span<UInt8>, endsUtterance: Bool = false) throws(SourceProblem) -> SendResult {
    try unsafe bytes.withUnsafeBytes { (bytes) throws(SourceProblem) in
      try unsafe channel.trySend(bytes, .bytes, ends: endsUtterance)
    }
  }

  /// Sends text or an event without waiting.
  @discardableResult
  public func trySend(_ text: String, endsUtterance: Bool = false) throws(SourceProblem) -> SendResult {
    let bytes = Array(text.utf8)
    return try unsafe bytes.span.withUnsafeBytes { (bytes) throws(SourceProblem) in
      try unsafe channel.trySend(bytes, .text, ends: endsUtterance)
    }
  }

  /// As for a span.
  @discardableResult
  public func trySend(_ samples: [Int16], endsUtterance: Bool = false) throws(SourceProblem) -> SendResult {
    try trySend(samples.span, endsUtterance: endsUtterance)
  }

  /// As for a span.
  @discardableResult
  public func trySend(_ samples: [Float], endsUtterance: Bool = false) throws(SourceProblem) -> SendResult {
    try trySend(samples.span, endsUtterance: endsUtterance)
  }

  /// As for a span.
  @discardableResult
  public func trySend(_ bytes: [UInt8], endsUtterance: Bool = false) throws(SourceProblem) -> SendResult {
    try trySend(bytes.span, endsUtterance: endsUtterance)
  }

  /// Ends the source: what was sent flows out, and the run ends with its last source. May be called more than once. `drain` and
  /// `stop` also end the source.
  public func finish() { channel.finish() }
}
