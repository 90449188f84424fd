import Foundation
import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceRunner

@Suite("Statistics for top", .timeLimit(.minutes(30)))
struct TopTests {
  /// A new directory under /tmp, removed with this value.
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

  @Test("a socket answers all clients, is accessible to this user only, and is removed with its run")
  func socket() throws {
    let folder = place.folder
    func serve() throws {
      let socket = try StatisticsSocket(folder)
      #expect(mode(folder.path) == 0o700)
      #expect(mode(folder.address(of: getpid())) == 0o600)
      #expect(folder.processes() == [getpid()])
      let long = String(repeating: "statistics ", count: 50_000)
      let received = Mutex<[StatisticsSocket.Answer]>([])
      // Threads and not tasks, because a query blocks.
      for _ in 0..<2 {
        Thread.detachNewThread {
          let answer = StatisticsSocket.query(getpid(), in: folder, patience: 300_000)
          received.withLock { $0.append(answer) }
        }
      }
      while received.withLock({ $0.count }) < 2 {
        socket.serve { long }
        sched_yield()
      }
      #expect(received.withLock { $0 } == [.text(long), .text(long)])
    }
    try serve()
    #expect(folder.processes().isEmpty)
    #expect(StatisticsSocket.query(getpid(), in: folder) == .noProcess)
  }

  @Test("a run that does not answer is distinguished from one that has ended, however often it is queried")
  func silence() throws {
    let socket = try StatisticsSocket(place.folder)
    // More often than the backlog allows: clients that timed out stay in it.
    for _ in 0..<12 {
      #expect(StatisticsSocket.query(getpid(), in: place.folder, patience: 10) == .timedOut)
    }
    socket.serve { "late" }
  }

  @Test(
    "the socket of an ended process is removed; a new run replaces an old socket with the same process ID")
  func stale() throws {
    try place.folder.open()
    let left = place.folder.address(of: 999_999_999)
    close(open(left, O_CREAT | O_WRONLY, 0o600))
    close(open(place.folder.address(of: getpid()), O_CREAT | O_WRONLY, 0o600))
    #expect(place.folder.processes() == [getpid()])
    #expect(access(left, F_OK) != 0)
    _ = try StatisticsSocket(place.folder)
  }

  @Test("a directory that others can access is not used")
  func openFolder() throws {
    mkdir(place.folder.path, 0o755)
    chmod(place.folder.path, 0o755)
    let text = "\(place.folder.path) is not a directory that only this user can access; remove it"
    #expect(throws: RunFolder.Failure(text: text)) { _ = try StatisticsSocket(place.folder) }
    #expect(place.folder.processes().isEmpty)
  }

  @Test("a symbolic link to a directory is not used, regardless of its owner")
  func linkedFolder() throws {
    symlink("/tmp", place.folder.path)
    #expect(throws: RunFolder.Failure.self) { try place.folder.open() }
  }

  /// A snapshot with all members.
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

  @Test("with an earlier snapshot, rates cover the time between the two")
  func rates() throws {
    let earlier = try snapshot(busy: 50, calls: 100, at: 9_000)
    let lines = TopTable(style: .plain).detail(try snapshot(busy: 90, calls: 200, at: 10_000), since: earlier)
    #expect(lines[1] == "millrace-v1 4 %")
    #expect(lines[5].contains("100  4 %     400 us"))
  }

  @Test("several runs are listed, one per line")
  func list() throws {
    #expect(
      TopTable(style: .plain).list([try snapshot(busy: 50, calls: 100, at: 9_000)]) == [
        "  process  name  graphs  instances  state                  time    CPU  dropped  missed",
        "     4711  bot   uplink          4  3 running, 1 stopped  2.5 s  2.5 %        6       3",
      ])
  }

  @Test("text that is not an answer of this version is rejected")
  func otherText() {
    for text in ["", "{}", "[1]", "{\"millraceTop\":2}", "hello"] { #expect(TopSnapshot(text) == nil) }
  }
}
