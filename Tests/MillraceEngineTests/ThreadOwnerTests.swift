import Foundation
import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Thread ownership", .timeLimit(.minutes(30)))
struct ThreadOwnerTests {
  #if DEBUG
    @Test("every thread passes while there is no owner, and afterwards only the owner")
    func owner() async throws {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let owner = ThreadOwner("test")
        owner.assertIsCurrent("before")
        let other = Thread { owner.bind() }
        other.start()
        while !other.isFinished { sched_yield() }
        owner.assertIsCurrent("after")
      }
      let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      #expect(text.contains("after must be called on the thread of the test"), "\(text)")
    }

    @Test("closing a run outside of the supervisor's thread ends a debug build and names the function")
    func supervisor() async throws {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let engine = Engine(catalogue: testCatalogue, workers: 1)
        let run = try engine.start(PlanBuilder.chain(source: ["count": 1], passes: 0, probe: "owner"))
        _ = run.waitUntilStopped(timeout: .seconds(120))
        run.close(releasing: false)
      }
      let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      #expect(text.contains("close(releasing:) must be called on the thread of the supervisor"), "\(text)")
    }

    @Test("moving a worker's clock outside of its thread ends a debug build and names the function")
    func worker() async throws {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
        let run = try engine.start(PlanBuilder.chain(source: ["count": 1], passes: 0, probe: "owner"))
        _ = run.waitUntilStopped(timeout: .seconds(120))
        engine.core.voiceWorkers[0].moveClock(to: 1)
      }
      let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
      #expect(text.contains("moveClock(to:) must be called on the thread of the worker"), "\(text)")
    }
  #endif
}
