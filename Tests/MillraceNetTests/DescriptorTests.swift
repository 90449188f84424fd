import Foundation
import MillraceCore
import MillraceNet
import Testing

/// Takes every descriptor this process may have, save for some.
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

/// Seconds of processor time of this process.
private func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A process that may open no more files goes on, and tells so.
@Suite("out of file descriptors", .timeLimit(.minutes(30))) struct DescriptorTests {
  @Test("visitors wait, the thread does not spin, the owner is told, and later they are let in")
  func accepting() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let told = Locked<[WebSocketDoor.Refusals]>([])
      let server = try await WebSocketServer.listen(
        port: 0, refused: { refusals in told.withLock { $0.append(refusals) } }
      ) { _ in .accept { _ in { _ in } } }
      var held = exhaust(sparing: 1)
      let peer = try RawConnection(port: server.port)
      while told.withLock(\.isEmpty) { usleep(1_000) }
      if told.withLock({ $0[0].latest.kind }) != .files { exit(42) }
      #expect(
        told.withLock { $0[0].latest.text }
          == "this process may open no more files; raise its limit (ulimit -n)")
      // A thread that asked again and again would take all of this time.
      let begin = (ContinuousClock.now, processorTime())
      while told.withLock(\.count) < 3 { usleep(1_000) }
      let share = (processorTime() - begin.1) / ((ContinuousClock.now - begin.0) / .seconds(1))
      if share >= 0.5 { exit(41) }
      // On a busy machine it would not get half of it, and still ask thousands of times.
      if told.withLock({ $0[2].total }) > 100 { exit(44) }
      close(held.removeLast())
      if !peer.handshake().hasPrefix("HTTP/1.1 101 ") { exit(43) }
      peer.close()
      for descriptor in held { close(descriptor) }
    }
  }

  @Test("a connection fails with a message, and is made when there are descriptors again")
  func connecting() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let server = try await echo()
      let held = exhaust(sparing: 0)
      let (_, refused) = try open(server.port)
      let end = await refused.end()
      #expect(
        end.description
          == "127.0.0.1:\(server.port) cannot be reached: this process may open no more files; raise its limit (ulimit -n)"
      )
      for descriptor in held { close(descriptor) }
      let (socket, ear) = try open(server.port)
      #expect(await ear.opened() == .some(nil))
      socket.cancel()
      _ = await ear.end()
    }
  }

  @Test("the thread of the sockets is refused with a message where it cannot be made, and made later")
  func beginning() async {
    await #expect(processExitsWith: .success) {
      limitDescriptors(128)
      let held = exhaust(sparing: 3)
      #expect {
        try NetLoop.begin()
      } throws: {
        "\($0)"
          == "no sockets can be opened: this process may open no more files; raise its limit (ulimit -n)"
      }
      for descriptor in held { close(descriptor) }
      try NetLoop.begin()
      let server = try await echo()
      server.stop()
    }
  }
}

/// Bytes of this process that are in memory, proc(5).
private func residentBytes() throws -> Int {
  let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
  return (words.dropFirst().first.flatMap { Int($0) } ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// True under a sanitizer, which keeps what was given back for a while, and books of its own.
private var isSanitized: Bool {
  unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

@Suite("a crowd that says nothing", .timeLimit(.minutes(30))) struct CrowdTests {
  @Test("ten thousand who connect and say nothing find the door's room, and leave no memory behind")
  func silent() async {
    await #expect(processExitsWith: .success) {
      var limits = WebSocketLimits()
      // Those inside stay for all of the test, however slow the machine is.
      limits.open = 600_000
      let server = try await echo(limits: limits)
      let room = WebSocketDoor().halfOpenPerAddress
      let inside = try (0..<room).map { _ in try RawConnection(port: server.port) }
      while server.halfOpen < room { usleep(1_000) }
      var answers: Set<String> = []
      func visit() throws {
        let peer = try RawConnection(port: server.port)
        answers.insert(String(peer.readHead().prefix(12)))
        peer.close()
      }
      for _ in 0..<1_000 { try visit() }
      let before = try residentBytes()
      for _ in 0..<9_000 { try visit() }
      #expect(answers == ["HTTP/1.1 503"])
      #expect(server.halfOpen == room && server.refused == 10_000)
      // A kilobyte that each of them left would be nine megabytes.
      let grown = try residentBytes() - before
      #expect(grown < 4 << 20 || isSanitized)
      for peer in inside { peer.close() }
      while server.halfOpen > 0 { usleep(1_000) }
      server.stop()
    }
  }
}
