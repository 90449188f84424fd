import MillraceCore
import TestSystem
import Testing

@Suite("mailbox") struct MailboxTests {
  private static func value(_ message: consuming ControlMessage?) -> Int? {
    guard let message else { return nil }
    switch consume message {
    case .set(_, .integer(let value)): return value
    case .set: return -1
    case .text: return -2
    case .duck: return -3
    case .resume: return -4
    }
  }

  @Test("messages arrive in order, and a full mailbox refuses one")
  func order() {
    let mailbox = Mailbox(capacity: 4)
    for number in 0..<4 {
      let sent = mailbox.send(.set(parameter: 0, .integer(number)))
      #expect(sent == .taken)
    }
    let refused = mailbox.send(.set(parameter: 0, .integer(9)))
    #expect(refused == .full)
    for number in 0..<4 { #expect(Self.value(mailbox.receive()) == number) }
    #expect(Self.value(mailbox.receive()) == nil)
  }

  @Test("a refused text returns its block at once")
  func refusedText() {
    let pool = BlockPool(blockBytes: 64, blockCount: 2)
    let mailbox = Mailbox(capacity: 1)
    _ = mailbox.send(.text(Packet(pool.take()!, byteCount: 1)))
    let refused = mailbox.send(.text(Packet(pool.take()!, byteCount: 1)))
    #expect(refused == .full)
    #expect(pool.freeCount == 1)
  }

  @Test("a closed mailbox accepts nothing, and queued messages can still be read")
  func closed() {
    let mailbox = Mailbox(capacity: 4)
    _ = mailbox.send(.duck)
    mailbox.close()
    let refused = mailbox.send(.resume)
    #expect(refused == .closed)
    #expect(Self.value(mailbox.receive()) == -3)
    #expect(Self.value(mailbox.receive()) == nil)
  }

  @Test("with several senders no message is lost, and each keeps its order")
  func senders() {
    let mailbox = Mailbox(capacity: 8)
    let each = 5000
    let wrong = Tally()
    let received = Tally()
    var bodies: [@Sendable () -> Void] = (0..<2).map { sender in
      {
        for number in 0..<each {
          spin { mailbox.send(.set(parameter: sender, .integer(number))) == .taken }
        }
      }
    }
    bodies.append {
      var next = [0, 0]
      while received.count < 2 * each {
        while let message = mailbox.receive() {
          guard case .set(let sender, .integer(let number)) = consume message else {
            wrong.add()
            continue
          }
          if number != next[sender] { wrong.add() }
          next[sender] = number + 1
          received.add()
        }
      }
    }
    runTogether(bodies)
    #expect(wrong.count == 0)
    #expect(received.count == 2 * each)
  }

  @Test("live values convert to numbers")
  func numbers() {
    #expect(LiveValue.bool(true).asNumber == 1)
    #expect(LiveValue.integer(-3).asNumber == -3)
    #expect(LiveValue.number(0.5).asNumber == 0.5)
    #expect(LiveValue.choice(2).asNumber == 2)
    #expect(LiveValue.string("7").asNumber == 0)
  }
}
