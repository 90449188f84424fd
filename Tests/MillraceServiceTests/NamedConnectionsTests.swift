import MillraceCore
import MillraceService
import Testing

private final class Login: Sendable {
  let number: Int
  init(_ number: Int) { self.number = number }
}

/// Makes logins, and notes which were closed.
private final class Office: Sendable {
  private let counts = Locked((made: 0, closed: [Int]()))

  var made: Int { counts.withLock { $0.made } }
  var closed: [Int] { counts.withLock { $0.closed } }

  func connections() -> NamedConnections<Login, String> {
    NamedConnections { [self] login in counts.withLock { $0.closed.append(login.number) } }
  }

  func login(_ settings: String) -> Login {
    Login(
      counts.withLock { counts in
        counts.made += 1
        return counts.made
      })
  }
}

@Suite("Connections shared by name") struct NamedConnectionsTests {
  private let office = Office()

  @Test("is made by the first, shared by the others, and closed by the last")
  func shared() throws {
    let connections = office.connections()
    var leases = try (0..<3).map { _ in try connections.lease("a", "s", make: office.login) }
    let other = try connections.lease("b", "s", make: office.login)
    #expect(leases.map(\.connection.number) == [1, 1, 1] && other.connection.number == 2)
    #expect(connections.names == ["a", "b"])
    leases.removeFirst(2)
    #expect(office.closed.isEmpty)
    leases.removeAll()
    #expect(office.closed == [1] && connections.names == ["b"])
    let again = try connections.lease("a", "s", make: office.login)
    #expect(again.connection.number == 3)
    withExtendedLifetime(other) {}
  }

  @Test("other settings are refused while it is in use")
  func settings() throws {
    let connections = office.connections()
    let lease = try connections.lease("a", "s", make: office.login)
    #expect {
      _ = try connections.lease("a", "t", make: office.login)
    } throws: {
      ($0 as? NodeProblem)?.text == "the connection \"a\" is in use with other settings"
    }
    withExtendedLifetime(lease) {}
  }

  @Test("a connection that cannot be made leaves nothing behind")
  func failure() throws {
    let connections = office.connections()
    #expect(throws: NodeProblem.self) {
      _ = try connections.lease("a", "s") { _ throws(NodeProblem) -> Login in throw NodeProblem("no") }
    }
    #expect(connections.names.isEmpty)
    _ = try connections.lease("a", "s", make: office.login)
  }

  @Test("many threads make one connection at a time, and close each that they made")
  func threads() async {
    let connections = office.connections()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { [office] in
          for _ in 0..<2_000 {
            do { withExtendedLifetime(try connections.lease("a", "s", make: office.login)) {} } catch {
              Issue.record("\(error)")
            }
          }
        }
      }
    }
    #expect(connections.names.isEmpty)
    #expect(office.closed.sorted() == Array(1...office.made))
  }
}
