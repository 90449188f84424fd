/// Those who are reading files from a hub, counted by their addresses. Nothing is kept of an address that reads none.
struct RoomFileReaders: Sendable {
  private let most: Int
  private let mostOfAddress: Int
  private var counts: [String: Int] = [:]
  private(set) var count = 0

  init(_ limits: RoomFileLimits) {
    most = limits.downloads
    mostOfAddress = limits.downloadsPerAddress
  }

  /// Counts one more; false: there are enough.
  mutating func begin(_ address: String) -> Bool {
    let present = counts[address] ?? 0
    guard count < most, present < mostOfAddress else { return false }
    counts[address] = present + 1
    count += 1
    return true
  }

  /// Counts one less.
  mutating func end(_ address: String) {
    guard let present = counts[address] else { return }
    counts[address] = present > 1 ? present - 1 : nil
    count -= 1
  }
}
