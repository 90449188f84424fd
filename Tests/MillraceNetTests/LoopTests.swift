import Foundation
import MillraceCore
import Synchronization
import TestNet
import TestSystem
import Testing

@testable import MillraceNet

/// Allows this process as many descriptors as the system lets it have.
private func raiseDescriptorLimit() {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

private func openDescriptors() throws -> Int {
  try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
}

@Suite("timers of a loop", .timeLimit(.minutes(30))) struct LoopTimerTests {
  @Test("a timer that another call of the same moment cancels does not run")
  func cancelledAtOnce() async throws {
    let loop = NetLoop.shared
    let second = Locked<NetTimer?>(nil)
    let ran = Locked(false)
    let isOver = Locked(false)
    loop.run {
      _ = loop.run(after: 1_000_000) { second.withLock { $0?.cancel() } }
      second.withLock { $0 = loop.run(after: 1_000_000) { ran.withLock { $0 = true } } }
      _ = loop.run(after: 1_000_000) { isOver.withLock { $0 = true } }
      // All three are due when the loop looks again.
      usleep(20_000)
    }
    try await until { isOver.withLock { $0 } }
    #expect(!ran.withLock { $0 })
  }
}

/// In processes of their own: the loops of a process are started once, and these tests count what is on them.
@Suite("loops", .timeLimit(.minutes(30))) struct LoopTests {
  @Test("sessions fill the shared loop, then go where the fewest are, and leave when their lease is released")
  func assigning() async {
    await #expect(processExitsWith: .success) {
      var leases: [NetLoop.Lease] = []
      for _ in 0..<NetLoop.sessionsPerLoop { leases.append(try NetLoop.assign()) }
      #expect(leases.allSatisfy { $0.loop === NetLoop.shared })
      #expect(NetLoop.shared.sessions == NetLoop.sessionsPerLoop)
      // Each of the next ones goes to an emptier loop than the shared one.
      let next = try NetLoop.assign()
      #expect(next.loop !== NetLoop.shared && next.loop.sessions == 1)
      var others: [NetLoop.Lease] = []
      for _ in 0..<100 {
        let lease = try NetLoop.assign()
        #expect(lease.loop !== NetLoop.shared)
        others.append(lease)
      }
      let loads = Dictionary(grouping: others + [next]) { ObjectIdentifier($0.loop) }.mapValues(\.count)
      #expect(loads.values.max()! - loads.values.min()! <= 1, "\(loads)")
      leases = []
      #expect(NetLoop.shared.sessions == 0)
      #expect(try NetLoop.assign().loop === NetLoop.shared)
    }
  }

  @Test("many threads at once are given loops that are equally full")
  func assigningAtOnce() async {
    await #expect(processExitsWith: .success) {
      var first: [NetLoop.Lease] = []
      for _ in 0..<NetLoop.sessionsPerLoop { first.append(try NetLoop.assign()) }
      let leases = Locked<[NetLoop.Lease]>([])
      runTogether(
        (0..<8).map { _ in
          {
            for _ in 0..<50 {
              guard let lease = try? NetLoop.assign() else { continue }
              leases.withLock { $0.append(lease) }
            }
          }
        })
      let loads = Dictionary(grouping: leases.withLock { $0 }) { ObjectIdentifier($0.loop) }
      // 400 do not fit on one loop beside 128 on the shared one, unless it has some of them too.
      #expect(loads.values.map(\.count).reduce(0, +) == 400)
      let sessions = leases.withLock { Set($0.map { $0.loop.sessions }) }
      #expect(sessions.max()! - sessions.min()! <= 1, "\(sessions)")
      withExtendedLifetime(first) {}
    }
  }

  @Test("a thousand streams are spread over loops, and each has all of its events on its own")
  func spread() async {
    await #expect(processExitsWith: .success) {
      raiseDescriptorLimit()
      let count = 1_000
      let astray = Atomic<Int>(0)
      let accepted = Locked<[ObjectIdentifier: Int]>([:])
      let server = try await ByteStreamServer.listen(
        port: 0, spreads: true, limits: .patient, admission: .loadTest
      ) { _ in
        .accept { stream in
          accepted.withLock { $0[ObjectIdentifier(stream.loop), default: 0] += 1 }
          return { event in
            if !stream.loop.isCurrent { astray.add(1, ordering: .relaxed) }
            switch event {
            case .bytes(let bytes): _ = stream.send(bytes)
            case .finished: stream.close()
            default: break
            }
          }
        }
      }
      let (opened, echoed, closed) = (Tally(), Tally(), Tally())
      var streams: [ByteStream] = []
      var leases: [NetLoop.Lease] = []
      for index in 0..<count {
        let lease = try NetLoop.assign()
        leases.append(lease)
        var request = ByteStreamRequest(try WebAddress("tcp://127.0.0.1:\(server.port)"))
        request.limits = .patient
        request.loop = lease.loop
        streams.append(
          ByteStream.open(request) { event in
            if !lease.loop.isCurrent { astray.add(1, ordering: .relaxed) }
            switch event {
            case .opened: opened.add()
            case .bytes: echoed.add()
            case .closed: closed.add()
            default: break
            }
          })
        // Connects in steps that the queue of a listening socket holds.
        while index - server.connections > 64 { usleep(1_000) }
      }
      while opened.count < count || server.connections < count { usleep(1_000) }
      for stream in streams { #expect(stream.send([1])) }
      while echoed.count < count { usleep(1_000) }
      // The server's connections are dealt out in turn.
      let loads = accepted.withLock { $0.values.map { $0 } }
      #expect(loads.count == NetLoop.most && loads.max()! - loads.min()! <= 1, "\(loads)")
      let loops = Set(leases.map { ObjectIdentifier($0.loop) })
      #expect(loops.count == NetLoop.most + 1)
      for stream in streams { stream.close() }
      while closed.count < count || server.connections > 0 { usleep(1_000) }
      #expect(astray.load(ordering: .relaxed) == 0)
      leases = []
      streams = []
      while NetLoop.shared.sessions > 0 { usleep(1_000) }
      server.stop()
    }
  }

  @Test("a WebSocket stays on the loop of its request, and a server's is a session of the shared loop")
  func sockets() async {
    await #expect(processExitsWith: .success) {
      let astray = Atomic<Int>(0)
      let loops = Locked<Set<ObjectIdentifier>>([])
      let server = try await WebSocketServer.listen(port: 0, limits: .patient) { _ in
        .accept { socket in
          loops.withLock { _ = $0.insert(ObjectIdentifier(socket.loop)) }
          return { event in
            if !socket.loop.isCurrent { astray.add(1, ordering: .relaxed) }
            if case .text(let bytes) = event { _ = socket.send(bytes, isText: true) }
          }
        }
      }
      var first: [NetLoop.Lease] = []
      for _ in 0..<NetLoop.sessionsPerLoop { first.append(try NetLoop.assign()) }
      let lease = try NetLoop.assign()
      #expect(lease.loop !== NetLoop.shared)
      for _ in 0..<4 {
        let (socket, events) = try open(server.port) { $0.loop = lease.loop }
        #expect(socket.loop === lease.loop)
        #expect(await events.opened() == .some(nil))
        #expect(socket.send(text: "here"))
        #expect(await events.message()?.bytes == Array("here".utf8))
        #expect(NetLoop.shared.sessions > NetLoop.sessionsPerLoop)
        socket.close()
        #expect(await events.end().code == 1000)
      }
      #expect(loops.withLock { $0 } == [ObjectIdentifier(NetLoop.shared)])
      #expect(astray.load(ordering: .relaxed) == 0)
      while NetLoop.shared.sessions > NetLoop.sessionsPerLoop { usleep(1_000) }
      withExtendedLifetime(first) {}
      server.stop()
    }
  }

  @Test("the sockets of a server with a thread of its own have one loop, which counts them")
  func ownThread() async throws {
    let accepted = Locked<[WebSocket]>([])
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    limits.webSocket.ping = 0
    limits.webSocket.close = 600_000
    let server = try await HTTPServer.listen(port: 0, limits: limits) { _ in
      .webSocket(protocol: nil) { socket in
        accepted.withLock { $0.append(socket) }
        return { _ in }
      }
    }
    let clients = try (0..<3).map { _ in try open(server.port) { $0.limits.close = 600_000 } }
    for client in clients { #expect(await client.events.opened() == .some(nil)) }
    // The answer is sent a moment before.
    while accepted.withLock(\.count) < 3 { try await Task.sleep(for: .milliseconds(1)) }
    let loops = accepted.withLock { $0.map(\.loop) }
    let first = try #require(loops.first)
    #expect(loops.count == 3 && loops.allSatisfy { $0 === first } && first !== NetLoop.shared)
    #expect(first.sessions == 3)
    for client in clients {
      client.socket.close()
      _ = await client.events.end()
    }
    while first.sessions > 0 { try await Task.sleep(for: .milliseconds(1)) }
    await server.stop()
  }

  @Test(
    "thousands of reconnections leave no connection, no descriptor and no session behind",
    arguments: [false, true])
  func reconnects(isSecure: Bool) async {
    await #expect(processExitsWith: .success) { [isSecure] in
      raiseDescriptorLimit()
      let identity = isSecure ? Certificates.localhost : nil
      let server = try await ByteStreamServer.listen(
        port: 0, identity: identity, spreads: true, limits: .patient, admission: .loadTest
      ) { _ in
        .accept { stream in
          { event in
            switch event {
            case .bytes(let bytes): _ = stream.send(bytes)
            case .finished: stream.close()
            default: break
            }
          }
        }
      }
      @Sendable func visit(_ number: Int) async throws {
        let (stream, events) = isSecure ? try connectSecurely(server.port) : try connect(server.port)
        #expect(await events.opened())
        #expect(stream.send([7]))
        #expect(await events.bytes(1) == [7])
        // What one side does at random in life, each does in turn here.
        switch number % 3 {
        case 0: stream.close()
        case 1: stream.finish()
        default: stream.cancel()
        }
        let problem = await events.end().problem
        #expect(problem == nil || problem?.kind == .cancelled, "\(problem as Any)")
      }
      // What stays open for good is open after the first.
      try await visit(0)
      while server.connections > 0 { usleep(1_000) }
      let before = try openDescriptors()
      let count = isSecure ? 600 : 3_000
      try await withThrowingTaskGroup(of: Void.self) { group in
        for lane in 0..<20 {
          group.addTask {
            for number in 0..<(count / 20) { try await visit(lane + number) }
          }
        }
        try await group.waitForAll()
      }
      while server.connections > 0 || server.halfOpen > 0 || NetLoop.shared.sessions > 0 { usleep(1_000) }
      while try openDescriptors() > before { usleep(1_000) }
      server.stop()
    }
  }
}

@Suite("wake signals", .timeLimit(.minutes(30))) struct WakeSignalTests {
  @Test("a signal runs its work on the loop of the session, on another loop than the shared one too")
  func onLoop() async {
    await #expect(processExitsWith: .success) {
      var first: [NetLoop.Lease] = []
      for _ in 0..<NetLoop.sessionsPerLoop { first.append(try NetLoop.assign()) }
      let lease = try NetLoop.assign()
      #expect(lease.loop !== NetLoop.shared)
      for loop in [NetLoop.shared, lease.loop] {
        let (calls, astray) = (Tally(), Tally())
        let signal = NetWakeSignal()
        // From before it begins: served after.
        signal.signal()
        signal.begin(on: loop) {
          if !loop.isCurrent { astray.add() }
          calls.add()
        }
        while calls.count < 1 { usleep(100) }
        for number in 2...200 {
          signal.signal()
          while calls.count < number { usleep(100) }
        }
        #expect(astray.count == 0)
        signal.end()
      }
    }
  }

  @Test("signals of many threads are never lost, and after the end none is served")
  func race() async throws {
    let calls = Tally()
    let seen = Atomic<Int>(0)
    let wanted = Atomic<Int>(0)
    let signal = NetWakeSignal()
    signal.begin {
      calls.add()
      seen.store(wanted.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
    }
    for round in 0..<200 {
      runTogether(
        (0..<4).map { _ in
          {
            wanted.add(1, ordering: .sequentiallyConsistent)
            signal.signal()
          }
        })
      // The work ran after the last signal.
      while seen.load(ordering: .sequentiallyConsistent) < 4 * (round + 1) { usleep(50) }
    }
    signal.end()
    let isThrough = Flag()
    NetLoop.shared.run { isThrough.set() }
    while !isThrough.isOn { usleep(100) }
    let before = calls.count
    signal.signal()
    // The pipe is read before what the loop is given later than the wake, or in the next round at the latest.
    for _ in 0..<3 {
      let isLater = Flag()
      _ = NetLoop.shared.run(after: 1_000_000) { isLater.set() }
      while !isLater.isOn { usleep(100) }
    }
    #expect(calls.count == before)
  }
}
