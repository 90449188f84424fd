/// A queue that releases an element as soon as it is given out, which a slice of an array does not. Not for searching. Pure.
struct TuyaQueue<Element: Sendable>: Sendable {
  /// Slots that were given out are removed from this many on, and once they are half of all.
  private static var leastGivenOut: Int { 32 }

  private var slots: [Element?] = []
  /// The first slot that was not given out.
  private var head = 0

  var isEmpty: Bool { head == slots.count }

  mutating func append(_ element: Element) { slots.append(element) }

  mutating func popFirst() -> Element? {
    guard head < slots.count else { return nil }
    let element = slots[head]
    slots[head] = nil
    head += 1
    if head >= Self.leastGivenOut && 2 * head >= slots.count {
      slots.removeFirst(head)
      head = 0
    }
    return element
  }
}
