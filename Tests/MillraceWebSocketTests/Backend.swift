import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket
import TestNet

/// A bound in seconds that no test should reach.
let limit = 300.0
let sound = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)
let lines = OutputShape(.text, packetDuration: nil, packetBytes: 1_000)

/// A server controlled by a test: what it received, and the socket to answer with.
final class Backend: Sendable {
  struct Message: Sendable, Equatable {
    var isText: Bool
    var bytes: [UInt8]
  }
  private let messages = Locked<[Message]>([])
  private let sockets = Locked<[WebSocket]>([])
  private let server = Locked<WebSocketServer?>(nil)
  /// The status clients are refused with; nil: they are accepted.
  private let refusal: Locked<Int?>
  var port: Int { server.withLock { $0?.port ?? 0 } }
  var received: [Message] { messages.withLock { $0 } }
  /// Connections that have ended.
  private let endings = Locked(0)
  var ends: Int { endings.withLock { $0 } }
  var connections: Int { sockets.withLock(\.count) }
  var socket: WebSocket? { sockets.withLock { $0.last } }

  /// - Parameters:
  ///   - large: the largest message in bytes.
  ///   - closeTimeout: milliseconds to wait for the answer to a close frame.
  init(
    refusing status: Int? = nil, greeting: [String] = [], large: Int = 1 << 20, closeTimeout: Int? = nil
  ) async throws {
    var limits = WebSocketLimits.patient
    limits.message = large
    if let closeTimeout { limits.close = closeTimeout }
    refusal = Locked(status)
    let made = try await WebSocketServer.listen(port: 0, limits: limits) { [self] _ in
      if let status = refusal.withLock({ $0 }) { return .refuse(status: status, "no") }
      return .accept { socket in
        self.sockets.withLock { $0.append(socket) }
        return { event in
          switch event {
          case .opened: for text in greeting { _ = socket.send(text: text) }
          case .text(let bytes): self.messages.withLock { $0.append(Message(isText: true, bytes: bytes)) }
          case .binary(let bytes): self.messages.withLock { $0.append(Message(isText: false, bytes: bytes)) }
          case .closed: self.endings.withLock { $0 += 1 }
          case .drained: break
          }
        }
      }
    }
    server.withLock { $0 = made }
  }

  /// Accepts clients from now on.
  func admit() { refusal.withLock { $0 = nil } }

  func stop() { server.withLock { $0?.stop() } }
}

func bench(
  _ port: Int, _ more: [String: ParameterValue] = [:],
  inputs: [String: OutputShape] = ["audio": sound, "text": lines]
) throws -> NodeBench {
  var parameters: [String: ParameterValue] = [
    "url": .string("ws://127.0.0.1:\(port)/"), "first": 10, "most": 20, "open": 600_000,
  ]
  parameters.merge(more) { _, new in new }
  return try NodeBench(NetWebSocket.self, parameters, inputs: inputs, clock: .realtime)
}

/// Runs the node until a condition holds that may depend on other threads, which do not wake the bench.
func wait(_ bench: NodeBench, _ seconds: Double = limit, until condition: () -> Bool) throws -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  while ContinuousClock.now < end {
    if try bench.wait(0.005, until: condition) { return true }
  }
  return false
}
