package import MillraceCore

/// Decoded sound of a stream, in the samples of the graph.
package struct StreamSound: Sendable {
  package var bytes: [UInt8]
  /// When its first sample should have come, on the monotonic clock.
  package var time: Nanoseconds
  /// The same in the stream's own time, and which connection's time that is.
  package var streamTime: Nanoseconds
  package var connection: Int

  package init(bytes: [UInt8], time: Nanoseconds, streamTime: Nanoseconds, connection: Int) {
    self.bytes = bytes
    self.time = time
    self.streamTime = streamTime
    self.connection = connection
  }
}

/// What became of a stream.
enum StreamNote: Sendable {
  /// Its first packet came, so long after the attempt began, with the attempt of this number.
  case connected(after: Nanoseconds, attempts: Int)
  /// There is none, or none any more: why.
  case disconnected(String)
  /// Another attempt comes after so long.
  case waits(Nanoseconds)
}
