import MillraceCore
import Testing

@testable import MillraceEngine

@Suite("The event queue of a listener", .timeLimit(.minutes(30)))
struct EventQueueTests {
  private func event(_ number: Int) -> GraphEvent {
    GraphEvent(time: Nanoseconds(number), node: "n", name: "\(number)", json: "{}")
  }

  private func rest(of queue: EventQueue) async -> [GraphEvent] {
    var events: [GraphEvent] = []
    while let event = await queue.next() { events.append(event) }
    return events
  }

  @Test("delivers events in order, with and without a waiting reader, and ends")
  func order() async {
    let queue = EventQueue()
    queue.push(event(0))
    let reader = Task { await rest(of: queue) }
    for number in 1..<500 {
      queue.push(event(number))
      if number % 50 == 0 { await Task.yield() }
    }
    queue.finish()
    queue.push(event(500))
    #expect(await reader.value.map(\.name) == (0..<500).map(String.init))
    #expect(queue.lostCount == 0)
  }

  @Test("drops the oldest events when full, and reports their number before the next one")
  func loss() async {
    let queue = EventQueue()
    for number in 0..<EventQueue.limit + 10 { queue.push(event(number)) }
    let first = await queue.next()
    #expect(first?.name == "eventsLost" && first?.node == "" && first?.time == 10)
    #expect(first?.json == #"{"time":1e-08,"event":"eventsLost","count":10}"#)
    #expect(await queue.next()?.name == "10")
    // Reading made room for one event; the next but one drops the oldest again.
    queue.push(event(5_000))
    queue.push(event(5_001))
    queue.finish()
    let rest = await rest(of: queue)
    #expect(rest.first?.json == #"{"time":1.2e-08,"event":"eventsLost","count":1}"#)
    #expect(rest.count == EventQueue.limit + 1 && rest.last?.name == "5001")
    #expect(queue.lostCount == 11)
  }

  @Test("reports the losses of a dropped loss report too, without counting them twice")
  func lossOfLoss() async {
    let queue = EventQueue()
    queue.push(.loss(of: 30, at: 0), missing: 30)
    for number in 0..<EventQueue.limit + 1 { queue.push(event(number)) }
    #expect(await queue.next()?.json == #"{"time":1e-09,"event":"eventsLost","count":31}"#)
    #expect(queue.lostCount == 1)
  }

  @Test("ends for a task that is cancelled while it waits")
  func cancelled() async {
    let queue = EventQueue()
    let reader = Task { await rest(of: queue).count }
    await Task.yield()
    reader.cancel()
    #expect(await reader.value == 0)
    queue.push(event(1))
    queue.finish()
    #expect(await queue.next()?.name == "1")
  }

  @Test("offers room up to a reserve; when full, the run waits for it, but not forever")
  func room() async {
    let queue = EventQueue()
    let places = EventQueue.limit - EventQueue.reserve
    #expect(queue.room(0) == places)
    for number in 0..<places { queue.push(event(number)) }
    #expect(queue.room(1) == 0)
    #expect(queue.room(EventQueue.patience) == 0)
    _ = await queue.next()
    #expect(queue.room(EventQueue.patience + 1) == 1)
    queue.push(event(0))
    #expect(queue.room(EventQueue.patience + 2) == 0)
    #expect(queue.room(2 * EventQueue.patience + 2) == Int.max)
  }
}
