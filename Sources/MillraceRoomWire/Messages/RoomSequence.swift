/// The ids of the requests of one connection, which only rise. Made by the member with `next`, checked by the hub with `take`.
public struct RoomSequence: Sendable, Hashable {
  /// The last id; 0: none yet.
  public private(set) var last = 0

  /// Begins a connection.
  public init() {}

  /// Checks an id that was read. Throws `repeatedID` for one that is not larger than all before, and changes nothing.
  public mutating func take(_ id: Int) throws(RoomError) {
    guard id > last else {
      throw RoomError(.repeatedID, "\"id\" must be larger than \(last), the last one of this connection")
    }
    last = id
  }

  /// The id of the next request.
  public mutating func next() -> Int {
    last += 1
    return last
  }
}
