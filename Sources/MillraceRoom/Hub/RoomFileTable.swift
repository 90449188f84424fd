internal import MillraceCore
internal import MillraceRoomWire

/// The files of a hub's rooms, in memory: a room has files for as long as it has members, and the limits are small.
///
/// ```
/// announced ──the upload begins──▸ arriving ──its last byte──▸ shared ──the room ends──▸ gone
///     └── too late ──▸ gone ◂── too late, broken off, its member leaves ──┘
/// ```
///
/// Memory is reserved when an upload begins: a ticket that is never used takes nothing from others. All steps take constant time, except
/// that the end of a room takes time in proportion to its files.
struct RoomFileTable: Sendable {
  private enum Stage: Sendable, Hashable {
    case announced(ticket: RoomName)
    case arriving, shared
  }

  private struct Entry: Sendable {
    let file: RoomFile
    let peer: RoomName
    let room: RoomName
    var stage: Stage
    /// Where it comes from.
    var address = ""
    /// The content, in pieces of `pieceBytes`: it grows without being copied, however small the parts are in which it comes.
    var pieces: [[UInt8]] = []
    var count = 0

    /// What it counts in the limits.
    var cost: Int { file.bytes + RoomFileTable.overhead }

    mutating func append(_ bytes: [UInt8]) {
      count += bytes.count
      var rest = bytes[...]
      while !rest.isEmpty {
        if pieces.last.map({ $0.count < RoomFileTable.pieceBytes }) != true { pieces.append([]) }
        let last = pieces.count - 1
        let part = rest.prefix(RoomFileTable.pieceBytes - pieces[last].count)
        pieces[last] += part
        rest = rest.dropFirst(part.count)
      }
    }
  }

  private struct Room: Sendable {
    var bytes = 0
    var files: Set<RoomName> = []
  }

  /// Bytes of a piece of a file.
  static let pieceBytes = 65_536
  /// What a file counts besides its content: a name of 255 characters of four bytes, and what else is kept of it. So files without content
  /// have a limit too.
  static let overhead = 2_048

  private let limits: RoomFileLimits
  private var entries: [RoomName: Entry] = [:]
  private var tickets: [RoomName: RoomName] = [:]
  /// Files of a member that are not shared yet.
  private var unfinished: [RoomName: Set<RoomName>] = [:]
  private var rooms: [RoomName: Room] = [:]
  /// Bytes of those that are arriving or shared, by where they come from.
  private var addresses: [String: Int] = [:]
  /// When files that are not shared yet are given up.
  private var due = Deadlines<RoomName>()
  /// What is reserved.
  private(set) var byteCount = 0

  init(_ limits: RoomFileLimits) { self.limits = limits }

  var count: Int { entries.count }
  var deadline: Nanoseconds? { due.next }

  /// Whether a name is that of a file or a ticket.
  func contains(_ id: RoomName) -> Bool { entries[id] != nil || tickets[id] != nil }

  // MARK: Announcing

  /// Throws where a file cannot be taken at present.
  func check(_ file: RoomFile, of peer: RoomName, in room: RoomName) throws(RoomError) {
    guard file.bytes <= limits.file else {
      throw RoomError(.badPayload, "\"payload.bytes\" must be an integer from 0 to \(limits.file)")
    }
    guard unfinished[peer, default: []].count < limits.unfinished else {
      let text = "\(limits.unfinished) files of this member are on their way; wait until one has arrived"
      throw RoomError(.tooManyRequests, text, afterMilliseconds: 1_000)
    }
    if let text = fullness(file.bytes + Self.overhead, in: room) { throw RoomError(.tooManyRequests, text) }
  }

  /// Why there is no place for so many bytes more; nil: there is.
  private func fullness(_ cost: Int, in room: RoomName) -> String? {
    if (rooms[room]?.bytes ?? 0) + cost > limits.room {
      return "the files of the room would have more than \(limits.room) bytes; they go with the room"
    }
    guard byteCount + cost > limits.hub else { return nil }
    return "the files of the hub would have more than \(limits.hub) bytes; try again when a room has ended"
  }

  mutating func announce(
    _ file: RoomFile, as id: RoomName, by ticket: RoomName, of peer: RoomName, in room: RoomName,
    at now: Nanoseconds
  ) {
    entries[id] = Entry(file: file, peer: peer, room: room, stage: .announced(ticket: ticket))
    tickets[ticket] = id
    unfinished[peer, default: []].insert(id)
    due.set(id, now + Nanoseconds(limits.ticketSeconds) * 1_000_000_000)
  }

  // MARK: Arriving

  /// Uses a ticket, whether the upload is taken or not.
  mutating func begin(
    _ ticket: String, length: Int?, from address: String, at now: Nanoseconds
  ) throws(RoomFileRefusal) -> RoomUpload {
    guard let name = RoomName(ticket), let id = tickets.removeValue(forKey: name), let entry = entries[id]
    else {
      throw RoomFileRefusal(
        403, "the ticket is unknown, was used, or is older than \(limits.ticketSeconds) s; ask for another")
    }
    if let refusal = obstacle(to: entry, length, from: address) {
      remove(id)
      throw refusal
    }
    entries[id]?.stage = .arriving
    entries[id]?.address = address
    addresses[address, default: 0] += entry.cost
    rooms[entry.room, default: Room()].bytes += entry.cost
    rooms[entry.room]?.files.insert(id)
    byteCount += entry.cost
    due.set(id, now + Nanoseconds(limits.uploadSeconds) * 1_000_000_000)
    return RoomUpload(file: id, bytes: entry.file.bytes)
  }

  private func obstacle(to entry: Entry, _ length: Int?, from address: String) -> RoomFileRefusal? {
    let bytes = entry.file.bytes
    guard let length else {
      return RoomFileRefusal(411, "an upload needs a Content-Length, of \(bytes) for this ticket")
    }
    guard length == bytes else {
      let text = "the ticket is for \(bytes) bytes, and the upload has \(length); ask for one of that size"
      return RoomFileRefusal(length > bytes ? 413 : 400, text)
    }
    if let text = fullness(entry.cost, in: entry.room) { return RoomFileRefusal(507, text) }
    guard addresses[address, default: 0] + entry.cost > limits.address else { return nil }
    return RoomFileRefusal(
      507,
      "the files from this address would have more than \(limits.address) bytes; they go with their rooms")
  }

  mutating func take(_ bytes: [UInt8], of id: RoomName) -> Bool {
    // No copy of the entry may be held while it grows: its content would be copied.
    guard entries[id]?.stage == .arriving else { return false }
    guard let rest = entries[id].map({ $0.file.bytes - $0.count }), bytes.count <= rest else {
      remove(id)
      return false
    }
    entries[id]?.append(bytes)
    return true
  }

  /// Shares a file whose content is here; nil: nobody waits for it.
  mutating func finish(_ id: RoomName) -> (file: RoomFile, peer: RoomName)? {
    guard let entry = entries[id], entry.stage == .arriving else { return nil }
    guard entry.count == entry.file.bytes else {
      remove(id)
      return nil
    }
    entries[id]?.stage = .shared
    settle(id, of: entry.peer)
    return (entry.file, entry.peer)
  }

  /// Gives an upload up.
  mutating func abandon(_ id: RoomName) {
    if entries[id]?.stage == .arriving { remove(id) }
  }

  // MARK: Reading

  func file(_ id: RoomName) -> RoomFile? {
    guard let entry = entries[id], entry.stage == .shared else { return nil }
    return entry.file
  }

  func piece(_ index: Int, of id: RoomName) -> [UInt8]? {
    guard let entry = entries[id], entry.stage == .shared else { return nil }
    return entry.pieces.indices.contains(index) ? entry.pieces[index] : []
  }

  // MARK: Going

  /// Gives up what has taken too long.
  mutating func run(at now: Nanoseconds) {
    while let id = due.popDue(at: now) { remove(id) }
  }

  /// A member has left: what it has shared stays with the room, and nothing more of it arrives.
  mutating func leave(_ peer: RoomName) {
    for id in unfinished[peer] ?? [] { remove(id) }
  }

  /// Forgets the files of a room, whose members have left.
  mutating func end(_ room: RoomName) {
    for id in rooms[room]?.files ?? [] { remove(id) }
  }

  private mutating func remove(_ id: RoomName) {
    guard let entry = entries.removeValue(forKey: id) else { return }
    settle(id, of: entry.peer)
    if case .announced(let ticket) = entry.stage {
      tickets[ticket] = nil
      return
    }
    byteCount -= entry.cost
    let rest = addresses[entry.address, default: 0] - entry.cost
    addresses[entry.address] = rest > 0 ? rest : nil
    rooms[entry.room]?.bytes -= entry.cost
    rooms[entry.room]?.files.remove(id)
    if rooms[entry.room]?.files.isEmpty == true { rooms[entry.room] = nil }
  }

  /// A file is no longer on its way.
  private mutating func settle(_ id: RoomName, of peer: RoomName) {
    due.remove(id)
    unfinished[peer]?.remove(id)
    if unfinished[peer]?.isEmpty == true { unfinished[peer] = nil }
  }
}
