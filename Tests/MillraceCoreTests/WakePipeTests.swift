import Glibc
import MillraceCore
import TestSystem
import Testing

@Suite("WakePipe")
struct WakePipeTests {
  /// Bytes in the pipe: signals that cost a system call.
  private func waiting(_ wakePipe: WakePipe) -> Int {
    var count: Int32 = 0
    return ioctl(wakePipe.descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
  }

  @Test("signals before a clear write one byte, and the next one after it writes again")
  func coalesced() throws {
    let wakePipe = try #require(WakePipe())
    #expect(waiting(wakePipe) == 0)
    for _ in 0..<5 { wakePipe.signal() }
    #expect(waiting(wakePipe) == 1)
    wakePipe.clear()
    #expect(waiting(wakePipe) == 0)
    wakePipe.signal()
    #expect(waiting(wakePipe) == 1)
  }

  @Test("a thread that clears a signal sees everything made ready before it, whatever the timing")
  func heard() throws {
    let wakePipe = try #require(WakePipe())
    let rounds = 10_000
    let (made, seen, missed) = (Tally(), Tally(), Tally())
    runTogether([
      {
        for round in 0..<rounds {
          made.add()
          wakePipe.signal()
          // From round to round, the second signal falls at varying points into the clearing of the first.
          for _ in 0..<round % 100 { _ = seen.count }
          made.add()
          wakePipe.signal()
          spin { seen.count == made.count || missed.count > 0 }
        }
      },
      {
        // A lost signal would block here for ever; a minute for each allows for a busy machine.
        let clock = Clock(.realtime)
        while seen.count < 2 * rounds {
          let end = clock.now + .milliseconds(60_000)
          var wish = pollfd(fd: wakePipe.descriptor, events: Int16(POLLIN), revents: 0)
          // Without sleeping: a thread that has to be woken would clear the second signal together with the first.
          spin { poll(&wish, 1, 0) == 1 || clock.now > end }
          guard wish.revents != 0 else { return missed.add() }
          wakePipe.clear()
          seen.add(made.count - seen.count)
        }
      },
    ])
    #expect(missed.count == 0)
  }
}
