/// The uploads or the downloads that are running, counted by their addresses. Nothing is kept of an address that has none.
struct RoomFileTransfers: Sendable {
  private let most: Int
  private let mostOfAddress: Int
  private var counts: [String: Int] = [:]
  private(set) var count = 0

  /// - Parameters:
  ///   - most: how many may run at once.
  ///   - mostOfAddress: how many of one address may.
  init(_ most: Int, ofAddress mostOfAddress: Int) {
    self.most = most
    self.mostOfAddress = mostOfAddress
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
