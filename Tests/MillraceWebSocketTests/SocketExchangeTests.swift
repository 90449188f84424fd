import MillraceCore
import MillraceNet
import Testing

@testable import MillraceWebSocket

@Suite("Between a connection and its node") struct SocketExchangeTests {
  @Test(
    "what happened to the connection is told behind the messages that came before it, and before those after it"
  )
  func order() throws {
    let exchange = SocketExchange(largest: 1_024, waker: .none)
    func receive(_ count: Int) { exchange.incoming.put(SocketExchange.text, count: count) { _ in } }
    func take() throws { exchange.incoming.drop(try #require(exchange.incoming.peek())) }
    // Often enough that the queue begins anew at its start.
    for round in 1...2_000 {
      receive(round % 700)
      receive(3)
      exchange.tell(SocketNote(event: .disconnected, number: round))
      receive(5)
      exchange.tell(SocketNote(event: .connected, number: round))
      #expect(exchange.nextNote() == nil)
      try take()
      #expect(exchange.nextNote() == nil)
      try take()
      #expect(exchange.nextNote()?.event == .disconnected)
      #expect(exchange.nextNote() == nil)
      try take()
      let last = exchange.nextNote()
      #expect(last?.event == .connected && last?.number == round)
      #expect(exchange.nextNote() == nil && exchange.incoming.peek() == nil)
    }
  }
}
