/// The most recent of many elements, oldest first. A double that runs for days remembers only these.
struct Recent<Element> {
  private let most: Int
  private(set) var all: [Element] = []

  init(_ most: Int) { self.most = most }

  mutating func add(_ element: Element) {
    if all.count == most { all.removeFirst() }
    all.append(element)
  }
}
