public import MillraceCore

/// The program's way into a graph: sound, encoded packets, pictures, text and events without a node of one's own.
///
/// ```swift
/// let mic = try run.source("mic")
/// try await mic.send(samples)        // [Int16] of any length
/// mic.finish()
/// ```
///
/// PCM is cut into packets of the node's `frame`; a remainder waits for the next send, or for `finish()`. Of mp3 and ogg a send is cut into
/// packets of `maxBytes`; of all other formats a send is one packet. Positions count the samples that were sent, those that were dropped
/// included. On the queue's other side the node passes packets on as its graph takes them.
///
/// Any thread; copies refer to the same source. Sends of several tasks come one after the other, each as a whole. A send copies its data and
/// takes a lock that only the program's side uses. It does *not* convert: samples have the type of the source's `sample`.
public struct GraphSource: Sendable {
  private let channel: SourceChannel

  init(_ channel: SourceChannel) { self.channel = channel }

  /// What its packets carry.
  public var format: Format { channel.format }

  /// The name of its node.
  public var node: String { channel.node }

  /// Packets that were dropped since the run was prepared, because the queue had no room for them. Any thread.
  public var droppedCount: Int { channel.droppedCount }

  // MARK: Sending, with back-pressure

  /// Sends interleaved samples to a source of s16 PCM. Waits while the queue is full, unless the node says `"whenFull": "dropNewest"`.
  /// - Parameters:
  ///   - samples: any number of them; a sample of each channel may be split between two sends.
  ///   - endsUtterance: nothing more of this utterance comes: the rest goes at once, as a shorter packet with that mark.
  /// - Throws: another format, or the end: of the source, the run, or the task.
  nonisolated(nonsending) public func send(
    _ samples: [Int16], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(samples, .int16, ends: endsUtterance)
  }

  /// Sends interleaved samples to a source of f32 PCM; full scale is -1 to 1. As for `[Int16]`.
  nonisolated(nonsending) public func send(
    _ samples: [Float], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(samples, .float, ends: endsUtterance)
  }

  /// Sends an Opus packet, an AAC frame, a JPEG or PNG picture, or a stretch of an MP3 or Ogg stream.
  /// - Throws: as for samples, and `tooLarge` for a packet of more than `maxBytes`.
  nonisolated(nonsending) public func send(
    _ bytes: [UInt8], endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(bytes, .bytes, ends: endsUtterance)
  }

  /// Sends a text, or an event as one JSON object.
  nonisolated(nonsending) public func send(
    _ text: String, endsUtterance: Bool = false
  ) async throws(SourceProblem) {
    try await channel.send(Array(text.utf8), .text, ends: endsUtterance)
  }

  // MARK: Sending without waiting

  /// Sends interleaved samples to a source of s16 PCM without waiting. What has no room is dropped and counted; what comes behind it keeps
  /// its place in time and is marked `discontinuity`. For threads that must not wait, such as a sound device's.
  @discardableResult
  public func trySend(_ samples: Span<Int16>, endsUtterance: Bool = false) throws(SourceProblem) -> SendResult
  {
    try unsafe samples.withUnsafeBytes { (bytes) throws(SourceProblem) in
      try unsafe channel.trySend(bytes, .int16, ends: endsUtterance)
    }
  }

  /// Sends interleaved samples to a source of f32 PCM without waiting. As for `Int16`.
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

  /// Sends a text or an event without waiting.
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

  /// Ends the source: what was sent flows out, and with the last source the run ends. May be called again. `drain` and `stop` end a source
  /// that nobody finishes.
  public func finish() { channel.finish() }
}
