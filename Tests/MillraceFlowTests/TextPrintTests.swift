import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("text.print") struct TextPrintTests {
  @Test("each packet becomes one line of standard output, line breaks inside it become spaces")
  func standardOutput() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      let bench = try NodeBench(TextPrint.self, inputs: ["in": lines])
      for text in ["grüß dich", "two\nlines\r\n", "", "last"] { bench.push(text: text) }
      try bench.run()
      try bench.finish()
      try #require(bench.close() == [])
    }
    let printed = String(decoding: result.standardOutputContent, as: UTF8.self)
    #expect(printed.hasSuffix("grüß dich\ntwo lines\n\nlast\n"))
    #expect(!String(decoding: result.standardErrorContent, as: UTF8.self).contains("last"))
  }

  @Test("it prints to standard error when set to")
  func standardError() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      let bench = try NodeBench(TextPrint.self, ["to": "stderr"], inputs: ["in": lines])
      bench.push(text: "over here")
      try bench.run()
    }
    #expect(String(decoding: result.standardErrorContent, as: UTF8.self).contains("over here\n"))
    #expect(!String(decoding: result.standardOutputContent, as: UTF8.self).contains("over here"))
  }

  @Test("a closed reader is a fault with a message, and does not end the program")
  func readerGone() async throws {
    await #expect(processExitsWith: .exitCode(42)) {
      var ends: [Int32] = [0, 0]
      _ = pipe(&ends)
      dup2(ends[1], 1)
      close(ends[0])
      close(ends[1])
      let bench = try NodeBench(TextPrint.self, inputs: ["in": lines])
      bench.push(text: "never read")
      do {
        try bench.run()
      } catch {
        let expected =
          "writing standard output failed: Broken pipe (errno 32); the lines before it are intact; "
          + "keep its reader running until the graph ends"
        // If the signal were still pending, this would end the process with it.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        exit("\(error)" == expected ? 42 : 1)
      }
    }
  }

  @Test("it asks for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() async throws {
    await #expect(processExitsWith: .exitCode(42)) {
      let bench = try NodeBench(TextPrint.self, inputs: ["in": lines])
      for number in 0..<2000 { bench.push(text: "line \(number)") }
      try bench.run(calls: 2)
      bench.resetHeapRequests()
      try bench.run()
      exit(bench.heapRequests == 0 ? 42 : 1)
    }
  }
}
