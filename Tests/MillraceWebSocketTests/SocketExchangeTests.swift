import MillraceCore
import MillraceNet
import Testing

@testable import MillraceWebSocket

@Suite("exchange between connection and node") struct SocketExchangeTests {
  @Test(
    "an event of the connection comes after the messages before it, and before those after it"
  )
  func order() throws {
    let exchange = SocketExchange(largest: 1_024, waker: .none)
    func receive(_ count: Int) { exchange.incoming.put(SocketExchange.text, count: count) { _ in } }
    func take() throws { exchange.incoming.drop(try #require(exchange.incoming.peek())) }
    // Often enough for the queue to wrap.
    for round in 1...2_000 {
      receive(round % 700)
      receive(3)
      exchange.report(ConnectionEvent(kind: .disconnected, number: round))
      receive(5)
      exchange.report(ConnectionEvent(kind: .connected, number: round))
      #expect(exchange.nextEvent() == nil)
      try take()
      #expect(exchange.nextEvent() == nil)
      try take()
      #expect(exchange.nextEvent()?.kind == .disconnected)
      #expect(exchange.nextEvent() == nil)
      try take()
      let last = exchange.nextEvent()
      #expect(last?.kind == .connected && last?.number == round)
      #expect(exchange.nextEvent() == nil && exchange.incoming.peek() == nil)
    }
  }
}
