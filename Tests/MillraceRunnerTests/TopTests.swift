import Foundation
import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceRunner

@Suite("Looking at runs from outside", .timeLimit(.minutes(30)))
struct TopTests {
  /// A folder of its own under /tmp, gone with the value.
  private final class Place {
    let folder: RunFolder
    private let parent: String

    init() {
      var template = Array("/tmp/millrace-top-XXXXXX".utf8CString)
      parent = template.withUnsafeMutableBufferPointer {
        mkdtemp($0.baseAddress!).map { String(cString: $0) }!
      }
      folder = RunFolder(path: parent + "/runs")
    }

    deinit {
      chmod(folder.path, 0o700)
      for name in ["1", "\(getpid())", "999999999"] { unlink("\(folder.path)/\(name)") }
      rmdir(folder.path)
      unlink(folder.path)
      rmdir(parent)
    }
  }

  private let place = Place()

  private func mode(_ path: String) -> UInt32 {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  @Test("a socket answers everybody who asks, is this user's alone, and goes with its run")
  func socket() throws {
    let folder = place.folder
    func serve() throws {
      let socket = try StatisticsSocket(folder)
      #expect(mode(folder.path) == 0o700)
      #expect(mode(folder.address(of: getpid())) == 0o600)
      #expect(folder.processes() == [getpid()])
      let long = String(repeating: "statistics ", count: 50_000)
      let heard = Mutex<[StatisticsSocket.Answer]>([])
      // Threads and not tasks: asking blocks.
      for _ in 0..<2 {
        Thread.detachNewThread {
          let answer = StatisticsSocket.ask(getpid(), in: folder, patience: 300_000)
          heard.withLock { $0.append(answer) }
        }
      }
      while heard.withLock({ $0.count }) < 2 {
        socket.answer { long }
        sched_yield()
      }
      #expect(heard.withLock { $0 } == [.text(long), .text(long)])
    }
    try serve()
    #expect(folder.processes().isEmpty)
    #expect(StatisticsSocket.ask(getpid(), in: folder) == .nobody)
  }

  @Test("a run that does not answer is told from one that is no more, however often it was asked")
  func silence() throws {
    let socket = try StatisticsSocket(place.folder)
    // More often than may wait at once: those that gave up wait on.
    for _ in 0..<12 {
      #expect(StatisticsSocket.ask(getpid(), in: place.folder, patience: 10) == .silence)
    }
    socket.answer { "late" }
  }

  @Test("what a process left behind is removed; a new run takes the place of an old one of its number")
  func stale() throws {
    try place.folder.open()
    let left = place.folder.address(of: 999_999_999)
    close(open(left, O_CREAT | O_WRONLY, 0o600))
    close(open(place.folder.address(of: getpid()), O_CREAT | O_WRONLY, 0o600))
    #expect(place.folder.processes() == [getpid()])
    #expect(access(left, F_OK) != 0)
    _ = try StatisticsSocket(place.folder)
  }

  @Test("a folder that others can look into is not used")
  func openFolder() throws {
    mkdir(place.folder.path, 0o755)
    chmod(place.folder.path, 0o755)
    let words = "\(place.folder.path) is not a folder of this user alone; remove it"
    #expect(throws: RunFolder.Refusal(text: words)) { _ = try StatisticsSocket(place.folder) }
    #expect(place.folder.processes().isEmpty)
  }

  @Test("a link to a folder is not used, whosever it is")
  func linkedFolder() throws {
    symlink("/tmp", place.folder.path)
    #expect(throws: RunFolder.Refusal.self) { try place.folder.open() }
  }

  /// A snapshot in which everything is written out.
  private func snapshot(busy: Double, calls: Int, at now: Double) throws -> TopSnapshot {
    try #require(
      TopSnapshot(
        """
        {"millraceTop":1,"process":4711,"name":"bot","now":\(now),
         "workers":[{"name":"millrace-v1","busy":\(busy + 10)}],
         "graphs":[{"title":"uplink","clock":"realtime","instances":{"prepared":0,"running":3,"stopped":1},
          "duration":2500,"wall":2000,
          "nodes":[{"name":"enc","type":"opus.encode","lane":"voice","calls":\(calls),"packetsIn":100,"busy":\(busy),
           "worstCall":0.75,"overBudget":2,"overAge":1,"blocked":4,"starved":1,"queued":5,"dropped":6,
           "lastAge":21.5,"worstAge":40}]}]}
        """))
  }

  @Test("a run is shown node by node, with rates since its start")
  func detail() throws {
    let lines = TopTable(style: .plain).detail(try snapshot(busy: 50, calls: 100, at: 9_000), since: nil)
    #expect(
      lines == [
        "bot  process 4711",
        "millrace-v1 3 %",
        "",
        "uplink  2.5 s, 3 running, 1 stopped",
        "  node  type         lane   calls/s    CPU  mean call  worst call  missed  waited  queued  dropped      age  oldest",
        "  enc   opus.encode  voice       50  2.5 %     500 us      750 us       3       5       5        6  21.5 ms   40 ms",
      ])
  }

  @Test("with an earlier look, rates are those in between")
  func rates() throws {
    let earlier = try snapshot(busy: 50, calls: 100, at: 9_000)
    let lines = TopTable(style: .plain).detail(try snapshot(busy: 90, calls: 200, at: 10_000), since: earlier)
    #expect(lines[1] == "millrace-v1 4 %")
    #expect(lines[5].contains("100  4 %     400 us"))
  }

  @Test("several runs are listed, a line each")
  func list() throws {
    #expect(
      TopTable(style: .plain).list([try snapshot(busy: 50, calls: 100, at: 9_000)]) == [
        "  process  name  graphs  instances  state                  time    CPU  dropped  missed",
        "     4711  bot   uplink          4  3 running, 1 stopped  2.5 s  2.5 %        6       3",
      ])
  }

  @Test("what is no answer of this version is no snapshot")
  func strangers() {
    for text in ["", "{}", "[1]", "{\"millraceTop\":2}", "hello"] { #expect(TopSnapshot(text) == nil) }
  }
}
