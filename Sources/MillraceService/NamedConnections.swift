public import MillraceCore
internal import Synchronization

/// Connections that nodes of any graph of the process share by name, such as several dialogues over one login: made by the first that asks,
/// closed when the last has let go.
///
/// ```swift
/// static let connections = NamedConnections<Login, LoginSettings>()
/// let lease = try Self.connections.lease("account-1", settings) { Login($0) }
/// lease.connection.begin(session)
/// ```
///
/// Any thread. A lease is counted while it lives; the connection ends with `close`.
public final class NamedConnections<Connection: AnyObject & Sendable, Settings: Sendable & Hashable>: Sendable
{
  private struct Entry {
    var connection: Connection
    var settings: Settings
    var leases: Int
  }

  private let entries = Locked<[String: Entry]>([:])
  private let close: @Sendable (Connection) -> Void

  /// - Parameter close: ends a connection that nobody uses any more; called once for each, on the thread that gives up the last lease.
  public init(close: @escaping @Sendable (Connection) -> Void) { self.close = close }

  /// A share of a connection.
  public final class Lease: Sendable {
    /// The connection.
    public let connection: Connection
    private let onEnd: @Sendable () -> Void

    fileprivate init(_ connection: Connection, _ onEnd: @escaping @Sendable () -> Void) {
      self.connection = connection
      self.onEnd = onEnd
    }

    deinit { onEnd() }
  }

  /// Takes a share of the connection with this name, which is made if there is none.
  /// - Parameters:
  ///   - name: of the connection, in this process.
  ///   - settings: with which it is made; every share has to want the same.
  ///   - make: makes the connection. Called under a lock: it must not block, or ask for another lease.
  /// - Throws: when the connection exists with other settings, or what `make` throws.
  public func lease(
    _ name: String, _ settings: Settings, make: (Settings) throws(NodeProblem) -> Connection
  ) throws(NodeProblem) -> Lease {
    let result: Result<Connection, NodeProblem> = entries.withLock { entries in
      if let entry = entries[name] {
        guard entry.settings == settings else {
          return .failure(
            NodeProblem(
              "the connection \"\(name)\" is in use with other settings",
              cure: "give both nodes the same settings, or this connection another name"))
        }
        entries[name]?.leases += 1
        return .success(entry.connection)
      }
      do throws(NodeProblem) {
        let connection = try make(settings)
        entries[name] = Entry(connection: connection, settings: settings, leases: 1)
        return .success(connection)
      } catch { return .failure(error) }
    }
    let connection = try result.get()
    return Lease(connection) { [self] in giveUp(name) }
  }

  /// The names in use, for reports.
  public var names: [String] { entries.withLock { $0.keys.sorted() } }

  private func giveUp(_ name: String) {
    let last: Connection? = entries.withLock { entries in
      guard var entry = entries[name] else { return nil }
      entry.leases -= 1
      entries[name] = entry.leases > 0 ? entry : nil
      return entry.leases > 0 ? nil : entry.connection
    }
    if let last { close(last) }
  }
}
