import MillraceDialog
import MillraceJSON
import MillraceService
import Testing

@testable import MillraceTuya

/// What waits between the cloud, a session and the disk.
@Suite("Tuya: what waits") struct LinkMemoryTests {
  private final class Probe: Sendable {}

  /// The event of a text document.
  private func text(_ json: String) throws -> ServiceEvent<TuyaNotice> {
    .message(.text(try TuyaText(parsing: Array(json.utf8))))
  }

  private func inbox(limit: Int) -> TuyaInbox { TuyaInbox(on: .shared, limit: limit, onRoom: {}) { _ in } }

  @Test("a long text fills an inbox, and so does an event with long data")
  func longTexts() throws {
    let long = String(repeating: "a", count: 100_000)
    #expect(!inbox(limit: 99_999).add([try text(#"{"bizType":"NLG","data":{"content":"\#(long)"}}"#)]))
    var event = TuyaCloudEvent(.mcpCommand, id: "e")
    event.data = ["text": .string(long)]
    #expect(!inbox(limit: 99_999).add([.message(.event(event))]))
    event.data = nil
    event.userData = ["text": .string(long)]
    #expect(!inbox(limit: 99_999).add([.message(.event(event))]))
    #expect(inbox(limit: 99_999).add([try text("{}")]))
  }

  @Test("many small values of a document count with the memory that they take, and not with their digits")
  func manyValues() throws {
    let values = [String](repeating: "0", count: 50_000).joined(separator: ",")
    let event = try text(#"{"data":[\#(values)]}"#)
    #expect(TuyaEventSize.bytes(of: event) > 50_000 * 32)
  }

  @Test("a queue gives out in order, and holds nothing of what it gave out")
  func queue() {
    var queue = TuyaQueue<Probe>()
    var alive: [WeakProbe] = []
    for count in [1, 31, 33, 200] {
      for _ in 0..<count {
        let probe = Probe()
        alive.append(WeakProbe(probe))
        queue.append(probe)
      }
      for index in alive.indices.suffix(count).dropLast(1) {
        check(queue.popFirst() === alive[index].probe)
        #expect(alive[index].probe == nil, "number \(index) of \(count)")
      }
      check(queue.popFirst() != nil)
      check(queue.popFirst() == nil)
      #expect(queue.isEmpty && alive.allSatisfy { $0.probe == nil })
    }
  }

  private struct WeakProbe {
    weak var probe: Probe?
    init(_ probe: Probe) { self.probe = probe }
  }

  private func file(_ count: Int) -> TuyaReceivedFile {
    TuyaReceivedFile(
      folder: "/folder", name: nil, kind: .file, suffix: "bin", bytes: [UInt8](repeating: 1, count: count))
  }

  @Test("files that were received are written one after the other, in their order")
  func files() {
    var queue = TuyaStoreQueue()
    for number in 1...3 { check(queue.add(file(number), of: number)) }
    for number in 1...3 {
      check(queue.next()?.session, number)
      check(queue.next() == nil)
      queue.finish()
    }
    check(queue.next() == nil)
  }

  @Test("while the disk takes no file, no more wait than memory allows; then there is room again")
  func slowDisk() {
    var queue = TuyaStoreQueue()
    let large = file(TuyaStoreQueue.most / 4)
    var count = 0
    while count < 100, queue.add(large, of: 1) {
      count += 1
      if count == 1 { check(queue.next() != nil) }
    }
    #expect(count == 3)
    queue.finish()
    check(queue.add(large, of: 1))
    check(!queue.add(large, of: 1))
  }
}
