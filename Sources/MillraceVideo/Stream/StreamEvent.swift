package import MillraceCore

/// Decoded audio of a stream, in the graph's format.
package struct StreamSound: Sendable {
  package var bytes: [UInt8]
  /// Expected arrival of its first sample, on the monotonic clock.
  package var time: Nanoseconds
  /// The same in stream time, and the connection that time belongs to.
  package var streamTime: Nanoseconds
  package var connection: Int
  /// Sound before it was dropped because the graph did not take it.
  package var followsLoss = false

  package init(bytes: [UInt8], time: Nanoseconds, streamTime: Nanoseconds, connection: Int) {
    self.bytes = bytes
    self.time = time
    self.streamTime = streamTime
    self.connection = connection
  }
}

/// What happened to the connection.
enum StreamEvent: Sendable {
  /// The first packet arrived this long after the given attempt started.
  case connected(after: Nanoseconds, attempts: Int)
  /// The stream was lost or could not be opened, with the reason.
  case disconnected(String)
  /// The next attempt follows after this time.
  case waits(Nanoseconds)
}
