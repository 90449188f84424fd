import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket

/// Seconds no test should ever need.
let limit = 300.0
let sound = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)
let lines = OutputShape(.text, packetDuration: nil, packetBytes: 1_000)

/// A server that a test drives: what came, and the socket to answer with.
final class Backend: Sendable {
  struct Message: Sendable, Equatable {
    var isText: Bool
    var bytes: [UInt8]
  }
  private let messages = Locked<[Message]>([])
  private let sockets = Locked<[WebSocket]>([])
  private let server = Locked<WebSocketServer?>(nil)
  /// With which status visitors are sent away; nil: they are let in.
  private let refusal: Locked<Int?>
  var port: Int { server.withLock { $0?.port ?? 0 } }
  var received: [Message] { messages.withLock { $0 } }
  /// Connections that have ended.
  private let endings = Locked(0)
  var ends: Int { endings.withLock { $0 } }
  var visits: Int { sockets.withLock(\.count) }
  var socket: WebSocket? { sockets.withLock { $0.last } }

  /// - Parameters:
  ///   - large: bytes of a message at most.
  ///   - patience: milliseconds that the answer to a good-bye is waited for.
  init(
    refusing status: Int? = nil, greeting: [String] = [], large: Int = 1 << 20, patience: Int? = nil
  ) async throws {
    var limits = WebSocketLimits()
    limits.message = large
    // Clients that a test keeps from reading answer no ping.
    limits.ping = 0
    if let patience { limits.close = patience }
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

  /// Lets whoever comes from here on in.
  func admit() { refusal.withLock { $0 = nil } }

  func stop() { server.withLock { $0?.stop() } }
}

func bench(
  _ port: Int, _ more: [String: ParameterValue] = [:],
  inputs: [String: OutputShape] = ["audio": sound, "text": lines]
) throws -> NodeBench {
  var parameters: [String: ParameterValue] = [
    "url": .string("ws://127.0.0.1:\(port)/"), "first": 10, "most": 20,
  ]
  parameters.merge(more) { _, new in new }
  return try NodeBench(NetWebSocket.self, parameters, inputs: inputs, clock: .realtime)
}

/// Runs the node until something holds that may come about outside of it, and so wakes nobody here.
func wait(_ bench: NodeBench, _ seconds: Double = limit, until condition: () -> Bool) throws -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  while ContinuousClock.now < end {
    if try bench.wait(0.005, until: condition) { return true }
  }
  return false
}
