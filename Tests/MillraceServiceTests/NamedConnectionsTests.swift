import MillraceCore
import MillraceService
import Synchronization
import Testing

private final class Login: Sendable {
  let number: Int
  init(_ number: Int) { self.number = number }
}

@Suite("Connections shared by name") final class NamedConnectionsTests {
  private let made = Atomic<Int>(0)
  private let closed = Locked<[Int]>([])

  private func connections() -> NamedConnections<Login, String> {
    NamedConnections { [closed] login in closed.withLock { $0.append(login.number) } }
  }

  private func login(_: String) -> Login { Login(made.add(1, ordering: .relaxed).newValue) }

  @Test("is made by the first, shared by the others, and closed by the last")
  func shared() throws {
    let connections = connections()
    var leases = try (0..<3).map { _ in try connections.lease("a", "s", make: login) }
    let other = try connections.lease("b", "s", make: login)
    #expect(leases.map(\.connection.number) == [1, 1, 1] && other.connection.number == 2)
    #expect(connections.names == ["a", "b"])
    leases.removeFirst(2)
    #expect(closed.withLock { $0 }.isEmpty)
    leases.removeAll()
    #expect(closed.withLock { $0 } == [1] && connections.names == ["b"])
    let again = try connections.lease("a", "s", make: login)
    #expect(again.connection.number == 3)
    withExtendedLifetime(other) {}
  }

  @Test("other settings are refused while it is in use")
  func settings() throws {
    let connections = connections()
    let lease = try connections.lease("a", "s", make: login)
    #expect {
      _ = try connections.lease("a", "t", make: login)
    } throws: {
      ($0 as? NodeProblem)?.text == "the connection \"a\" is in use with other settings"
    }
    withExtendedLifetime(lease) {}
  }

  @Test("a connection that cannot be made leaves nothing behind")
  func failure() throws {
    let connections = connections()
    #expect(throws: NodeProblem.self) {
      _ = try connections.lease("a", "s") { _ throws(NodeProblem) -> Login in throw NodeProblem("no") }
    }
    #expect(connections.names.isEmpty)
    _ = try connections.lease("a", "s", make: login)
  }

  @Test("many threads make one connection at a time, and close each that they made")
  func threads() async {
    let connections = connections()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { [self] in
          for _ in 0..<2_000 {
            do { withExtendedLifetime(try connections.lease("a", "s", make: login)) {} } catch {
              Issue.record("\(error)")
            }
          }
        }
      }
    }
    #expect(connections.names.isEmpty)
    #expect(closed.withLock { $0 }.sorted() == Array(1...made.load(ordering: .relaxed)))
  }
}
