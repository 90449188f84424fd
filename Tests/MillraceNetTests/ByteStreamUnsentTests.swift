import MillraceCore
import MillraceNet
import TestNet
import Testing

@Suite("what the system may hold of a byte stream", .timeLimit(.minutes(30))) struct ByteStreamUnsentTests {
  /// A server's end of a stream to a peer that does not read, whose system takes some 64 KiB, and 4 MiB on their way to it in small sends.
  private struct Line {
    static let total = 4 << 20
    static let piece = 4_096

    let server: ByteStreamServer
    let peer: RawConnection
    private let stream = Locked<ByteStream?>(nil)

    init(unsent: Int?) async throws {
      var limits = ByteStreamLimits.patient
      limits.backlog = 2 * Self.total
      limits.unsent = unsent
      let stream = stream
      let all = pattern(Self.total)
      server = try await ByteStreamServer.listen(port: 0, limits: limits) { _ in
        .accept { accepted in
          { event in
            guard case .opened = event else { return }
            for start in stride(from: 0, to: Self.total, by: Self.piece) {
              _ = accepted.send(Array(all[start..<start + Self.piece]))
            }
            stream.withLock { $0 = accepted }
          }
        }
      }
      peer = try RawConnection(port: server.port, buffer: 32_768)
      while stream.withLock({ $0 }) == nil { try await Task.sleep(for: .milliseconds(1)) }
    }

    /// Bytes that the system has taken.
    var taken: Int { stream.withLock { Self.total - ($0?.backlog ?? 0) } }

    func end() {
      peer.close()
      server.stop()
    }
  }

  @Test("beyond what the peer takes, the system holds little more than the limit, and everything arrives")
  func bounded() async throws {
    let bounded = try await Line(unsent: 16_384)
    let free = try await Line(unsent: nil)
    // The peer's window, the limit, and the packets that the system has begun; without a limit it is megabytes.
    let most = 600_000
    while free.taken <= 2 * most {
      #expect(bounded.taken <= most)
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(bounded.taken > 0 && bounded.taken <= most)
    #expect(bounded.peer.read(exactly: Line.total) == pattern(Line.total))
    while bounded.taken < Line.total { try await Task.sleep(for: .milliseconds(1)) }
    bounded.end()
    free.end()
  }

  @Test("a limit that no socket can have is refused", arguments: [0, -1, 1 << 31])
  func invalid(unsent: Int) async throws {
    let (_, events) = try connect(1) { $0.limits.unsent = unsent }
    let end = await events.end()
    #expect(end.problem?.kind == .address)
    #expect(end.problem?.text.hasPrefix("the unsent bytes of a byte stream must be at least 1") == true)
  }
}
