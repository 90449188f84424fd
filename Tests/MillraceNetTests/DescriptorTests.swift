import Foundation
import MillraceCore
import MillraceNet
import TestNet
import Testing

/// Opens descriptors until only `spare` are left.
private func exhaust(sparing spare: Int) -> [Int32] {
  var held: [Int32] = []
  while case let next = open("/dev/null", O_RDONLY), next >= 0 { held.append(next) }
  for _ in 0..<min(spare, held.count) { close(held.removeLast()) }
  return held
}

private func limitDescriptors(_ count: UInt) {
  var limit = rlimit(rlim_cur: rlim_t(count), rlim_max: rlim_t(count))
  precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
}

/// Processor time of this process in seconds.
private func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// What `body` returns, run on a thread of its own. While tasks wait for Swift's thread pool, libdispatch opens files to
/// count the pool's threads, and ends a process in which it cannot: without descriptors, none of them may be held.
private func onOwnThread(_ body: @escaping @Sendable () -> Int32) async -> Int32 {
  await withCheckedContinuation { waiting in
    Thread { waiting.resume(returning: body()) }.start()
  }
}

/// A process that is out of file descriptors keeps running, and reports it.
@Suite("out of file descriptors", .timeLimit(.minutes(30))) struct DescriptorTests {
  @Test("clients wait, the thread does not spin, the owner is notified, and later they are accepted")
  func accepting() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let reports = Locked<[ServerAdmission.Refusals]>([])
      let server = try await WebSocketServer.listen(
        port: 0, limits: .patient, refused: { refusals in reports.withLock { $0.append(refusals) } }
      ) { _ in .accept { _ in { _ in } } }
      let failed = await onOwnThread {
        var held = exhaust(sparing: 1)
        guard let peer = try? RawConnection(port: server.port) else { return 40 }
        while reports.withLock(\.isEmpty) { usleep(1_000) }
        let first = reports.withLock { $0[0].latest }
        if first.kind != .descriptors { return 42 }
        if first.text != "too many open files in this process; raise its limit (ulimit -n)" {
          return 45
        }
        // A spinning thread would take all of this time.
        let begin = (ContinuousClock.now, processorTime())
        while reports.withLock(\.count) < 3 { usleep(1_000) }
        let share = (processorTime() - begin.1) / ((ContinuousClock.now - begin.0) / .seconds(1))
        if share >= 0.5 { return 41 }
        // On a busy machine it may not get half the processor, and would still report thousands of times.
        if reports.withLock({ $0[2].total }) > 100 { return 44 }
        close(held.removeLast())
        if !peer.handshake().hasPrefix("HTTP/1.1 101 ") { return 43 }
        peer.close()
        for descriptor in held { close(descriptor) }
        return 0
      }
      exit(failed)
    }
  }

  @Test("a connection fails with a message, and succeeds once descriptors are free again")
  func connecting() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let server = try await echo()
      let held = exhaust(sparing: 0)
      let (_, refused) = try open(server.port)
      let end = await refused.end()
      #expect(
        end.description
          == "cannot connect to 127.0.0.1:\(server.port): too many open files in this process; raise its limit (ulimit -n)"
      )
      for descriptor in held { close(descriptor) }
      let (socket, events) = try open(server.port)
      #expect(await events.opened() == .some(nil))
      socket.cancel()
      _ = await events.end()
    }
  }

  @Test("the network thread fails to start with a message, and starts later")
  func beginning() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let held = exhaust(sparing: 3)
      #expect {
        try NetLoop.begin()
      } throws: {
        "\($0)"
          == "cannot open sockets: too many open files in this process; raise its limit (ulimit -n)"
      }
      for descriptor in held { close(descriptor) }
      try NetLoop.begin()
      let server = try await echo()
      server.stop()
    }
  }
}

/// Resident bytes of this process, proc(5).
private func residentBytes() throws -> Int {
  let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
  return (words.dropFirst().first.flatMap { Int($0) } ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// True under a sanitizer, which holds freed memory for a while and keeps its own records.
private var isSanitized: Bool {
  unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

@Suite("many silent clients", .timeLimit(.minutes(30))) struct SilentClientTests {
  @Test("ten thousand silent connections do not exceed the half-open limit, and leak no memory")
  func silent() async {
    await #expect(processExitsWith: .success) {
      var limits = WebSocketLimits()
      // The held connections stay half-open for the whole test, however slow the machine is.
      limits.open = 600_000
      let server = try await echo(limits: limits)
      let limit = ServerAdmission().halfOpenPerAddress
      let held = try (0..<limit).map { _ in try RawConnection(port: server.port) }
      while server.halfOpen < limit { usleep(1_000) }
      var answers: Set<String> = []
      func connect() throws {
        let peer = try RawConnection(port: server.port)
        answers.insert(String(peer.readHead().prefix(12)))
        peer.close()
      }
      for _ in 0..<1_000 { try connect() }
      let before = try residentBytes()
      for _ in 0..<9_000 { try connect() }
      #expect(answers == ["HTTP/1.1 503"])
      #expect(server.halfOpen == limit && server.refused == 10_000)
      // One leaked kilobyte each would be nine megabytes.
      let grown = try residentBytes() - before
      #expect(grown < 4 << 20 || isSanitized)
      for peer in held { peer.close() }
      while server.halfOpen > 0 { usleep(1_000) }
      server.stop()
    }
  }
}
