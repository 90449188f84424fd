import Glibc
import MillraceCore
import TestSystem
import Testing

@Suite("PipeBell")
struct PipeBellTests {
  /// Bytes that wait in the pipe: rings that cost a system call.
  private func waiting(_ bell: PipeBell) -> Int {
    var count: Int32 = 0
    return ioctl(bell.descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
  }

  @Test("rings that were not heard yet cost nothing more, and the next one after that is written again")
  func coalesced() throws {
    let bell = try #require(PipeBell())
    #expect(waiting(bell) == 0)
    for _ in 0..<5 { bell.ring() }
    #expect(waiting(bell) == 1)
    bell.clear()
    #expect(waiting(bell) == 0)
    bell.ring()
    #expect(waiting(bell) == 1)
  }

  @Test("what is made ready before a ring is seen by the thread that hears it, whenever both happen")
  func heard() throws {
    let bell = try #require(PipeBell())
    let rounds = 10_000
    let (made, seen, missed) = (Tally(), Tally(), Tally())
    runTogether([
      {
        for round in 0..<rounds {
          made.add()
          bell.ring()
          // The second ring falls, from round to round, anywhere into the hearing of the first.
          for _ in 0..<round % 100 { _ = seen.count }
          made.add()
          bell.ring()
          spin { seen.count == made.count || missed.count > 0 }
        }
      },
      {
        // A ring that got lost would leave it here for ever; a minute for each is for a machine that does everything at once.
        let clock = Clock(.realtime)
        while seen.count < 2 * rounds {
          let end = clock.now + .milliseconds(60_000)
          var wish = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
          // Without sleeping: a thread that has to be woken hears the second ring together with the first.
          spin { poll(&wish, 1, 0) == 1 || clock.now > end }
          guard wish.revents != 0 else { return missed.add() }
          bell.clear()
          seen.add(made.count - seen.count)
        }
      },
    ])
    #expect(missed.count == 0)
  }
}
