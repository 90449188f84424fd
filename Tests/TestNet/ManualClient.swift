import MillraceCore
import MillraceNet

/// A WebSocket client that a test leads step by step, and what it received.
public final class ManualClient: Sendable {
  private let socket: WebSocket
  private let received: Locked<[String]>
  /// Why the connection was closed.
  private let reason: Locked<String>

  /// Connects, and waits until the connection is open.
  /// - Parameters:
  ///   - url: the address.
  ///   - headers: headers of the handshake.
  ///   - word: what a text message is called in `words`.
  public init(
    _ url: String, headers: [(name: String, value: String)] = [],
    word: @escaping @Sendable ([UInt8]) -> String
  ) async throws {
    let received = Locked<[String]>([])
    self.received = received
    let reason = Locked("")
    self.reason = reason
    var request = WebSocketRequest(try WebAddress(url))
    request.headers = headers
    request.proxy = .direct
    request.limits = .patient
    socket = WebSocket.open(request) { event in
      switch event {
      case .opened: received.withLock { $0.append("opened") }
      case .text(let bytes):
        let name = word(bytes)
        received.withLock { $0.append(name) }
      case .binary: received.withLock { $0.append("sound") }
      case .closed(let end):
        received.withLock { $0.append("closed") }
        reason.withLock { $0 = "\(end)" }
      case .drained: break
      }
    }
    try await wait(for: "opened")
  }

  /// What was received: names of text messages, "sound" for binary messages, "opened" and "closed".
  public var words: [String] { received.withLock { $0 } }

  /// Sends a text message.
  public func send(_ text: String) { _ = socket.send(text: text) }

  /// Sends a binary message.
  public func send(_ bytes: [UInt8]) { _ = socket.send(bytes, isText: false) }

  /// Something did not arrive.
  public struct Missing: Error, CustomStringConvertible {
    /// What, what arrived instead, and why the connection was closed.
    public let description: String
  }

  /// Waits until something was received so many times, for at most five minutes.
  public func wait(for word: String, times: Int = 1) async throws {
    let end = ContinuousClock.now + .seconds(300)
    while words.count(where: { $0 == word }) < times {
      guard ContinuousClock.now < end else {
        throw Missing(description: "no \(word): \(words) \(reason.withLock { $0 })")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Closes the connection.
  public func close() { socket.close() }
}
