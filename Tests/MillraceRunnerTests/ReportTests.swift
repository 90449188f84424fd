import Glibc
import MillraceGraph
import MillraceRunner
import Testing

@Suite("The HTML report", .timeLimit(.minutes(30)))
struct ReportTests {
  /// The page of a run of a graph of `runner`.
  private func page(of result: ExitTest.Result?) -> String { output(of: result) }

  @Test("it is self-contained: one document without network access or scripts")
  func selfContained() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("run", "-q", "good.json", "--report", "page.html", showing: "page.html")
    }
    let page = page(of: result)
    #expect(page.hasPrefix("<!doctype html>"))
    #expect(page.hasSuffix("</body>\n</html>\n"))
    for word in ["<script", "<link", "<img", "@import", "url(", "src="] { #expect(!page.contains(word)) }
    let addresses = page.split(separator: "http").dropFirst().filter {
      !$0.hasPrefix("://www.w3.org/2000/svg")
    }
    #expect(addresses.isEmpty, "only the SVG namespace")
    #expect(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"))
  }

  @Test("it shows the drawing with results, every node and link, and that there were no problems")
  func good() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "calm.json", "--set", "count=7", "--report", "page.html", showing: "page.html")
    }
    let page = page(of: result)
    #expect(page.contains("data-node=\"src\"") && page.contains("data-link=\"src -&gt; end\""))
    #expect(page.contains("<b>7</b><span>packets delivered</span>"))
    #expect(page.contains("<b>None.</b>"))
    #expect(!page.contains("<h2>Turns</h2>") && !page.contains("<h2>Sound</h2>"), "there were none")
    #expect(!page.contains("<h2>Instances</h2>"))
  }

  @Test("a failure comes first, with the node's message")
  func failure() async {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardOutputContent]) {
      runner("run", "-q", "fails.json", "--report", "page.html", showing: "page.html")
    }
    let page = page(of: result)
    #expect(page.contains("r-pill-bad\">failed<"))
    #expect(page.contains("<b>Node end failed</b> packet 3 was one too many; give it fewer"))
  }

  @Test("it does not contain values from the environment")
  func secret() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("run", "-q", "secret.json", "--report", "page.html", showing: "page.html")
    }
    #expect(page(of: result).contains("(secret)"))
    #expect(!page(of: result).contains("sesame"))
  }

  @Test("several instances are added up, and the worst are listed")
  func instances() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "good.json", "--instances", "25", "--set", "count=1{instance}", "--report", "page.html",
        showing: "page.html")
    }
    let page = page(of: result)
    // 11 + 12 … + 19, then 110 to 125.
    #expect(page.contains("<b>2015</b><span>packets delivered</span>"))
    #expect(page.contains("25 instances"))
    #expect(page.contains("The worst 20 of 25"))
  }

  @Test("of several instances the failed ones are listed first")
  func failedFirst() async throws {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "fails.json", "--instances", "5", "--set", "count={instance}", "--report", "page.html",
        showing: "page.html")
    }
    let page = page(of: result)
    let table = try #require(page.components(separatedBy: "<h2>Instances</h2>").last)
    // The third packet fails: of the instances with 1 to 5 packets the last three do.
    let places = try (1...5).map { try #require(table.range(of: "count #\($0)<")).lowerBound }
    #expect(places[2...].allSatisfy { $0 < places[0] && $0 < places[1] })
  }

  @Test("turns are drawn from the events of nodes, with the answer time")
  func turns() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "talks.json", "--report", "page.html", catalogue: .runnerTalkTests, showing: "page.html")
    }
    let page = page(of: result)
    #expect(page.contains("<h2>Turns</h2>"))
    #expect(page.contains("title=\"user speaks: 500 ms\""))
    #expect(page.contains("title=\"waiting for the reply: 290 ms\""))
    #expect(page.contains("<b>400 ms</b><span>median answer time</span>"))
    #expect(page.components(separatedBy: "class=\"r-turn\"").count == 3, "two turns")
    #expect(page.contains("title=\"interrupted\"") && page.contains("<b>no answer</b>"))
  }

  @Test("turns are in the JSON report too")
  func turnsAsJSON() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "talks.json", "--report", "report.json", catalogue: .runnerTalkTests,
        showing: "report.json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "report", text: output(of: result))).root
    let turns = try #require(root["turns"]?.array)
    #expect(turns.count == 2)
    #expect(turns[0]["speechStarted"]?.double == 100)
    #expect(turns[0]["answerTime"]?.double == 400)
    #expect(turns[1]["answerTime"] == nil)
  }

  @Test("the sound that enters and leaves is drawn, complete on a virtual clock")
  func sound() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "sound.json", "--report", "page.html", catalogue: .runnerProgramTests,
        showing: "page.html")
    }
    let page = page(of: result)
    #expect(page.contains("<h2>Sound</h2>"))
    #expect(page.contains("<h3>tone -&gt; quiet</h3>") && page.contains("<h3>quiet -&gt; end</h3>"))
    // The level of a tone is its peak; the gain takes 6 dB off.
    #expect(page.contains("peak -20.0 dBFS") && page.contains("peak -26.0 dBFS"))
    #expect(page.contains("<span>5 s</span>"), "nothing is missing at the end")
    #expect(!page.contains("packets not shown"))
  }

  @Test("packets that were too old are on the page, in the summary, and reported while it runs")
  func tooOld() async {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      runner("run", "late.json", "--report", "page.html", showing: "page.html")
    }
    #expect(page(of: result).contains("<b>Node end</b> received packets older than 1 ms in 100 calls"))
    let text = errors(of: result)
    #expect(text.contains("count: node \"end\": a packet was "))
    #expect(text.contains("node \"end\" received packets older than 1 ms in 100 calls"))
  }

  @Test("a report in another format is rejected with the formats there are")
  func otherKind() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "--report", "page.pdf")
    }
    #expect(
      errors(of: result).contains("--report writes HTML or JSON; name a file that ends in .html or .json"))
  }
}
