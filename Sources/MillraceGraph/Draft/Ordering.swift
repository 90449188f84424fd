import MillraceCore

/// Groups of a directed graph's vertices that lead to each other (Tarjan's algorithm, without recursion: a chain of a hundred
/// thousand nodes must not end on the stack's guard page).
struct StrongComponents {
  /// Each group in ascending order; a group that leads to another comes before it. Groups that do not lead to each other keep
  /// the order of their numbers.
  private(set) var groups: [[Int]] = []

  private var indices: [Int]
  private var lowest: [Int]
  private var isOpen: [Bool]
  private var stack: [Int] = []
  private var count = 0

  init(successors: [[Int]]) {
    indices = Array(repeating: -1, count: successors.count)
    lowest = indices
    isOpen = Array(repeating: false, count: successors.count)
    // Groups are found last ones first. Starting from the last vertex keeps the given order where it is free.
    for start in successors.indices.reversed() where indices[start] < 0 { visit(start, successors) }
    groups.reverse()
  }

  private mutating func visit(_ start: Int, _ successors: [[Int]]) {
    var calls: [(vertex: Int, next: Int)] = [(start, 0)]
    enter(start)
    while let (vertex, next) = calls.last {
      let following = successors[vertex]
      if next < following.count {
        calls[calls.count - 1].next += 1
        // Likewise from the last successor to the first.
        let target = following[following.count - 1 - next]
        if indices[target] < 0 {
          enter(target)
          calls.append((target, 0))
        } else if isOpen[target] {
          lowest[vertex] = min(lowest[vertex], indices[target])
        }
        continue
      }
      calls.removeLast()
      if let caller = calls.last { lowest[caller.vertex] = min(lowest[caller.vertex], lowest[vertex]) }
      if lowest[vertex] == indices[vertex] { close(vertex) }
    }
  }

  private mutating func enter(_ vertex: Int) {
    indices[vertex] = count
    lowest[vertex] = count
    count += 1
    stack.append(vertex)
    isOpen[vertex] = true
  }

  private mutating func close(_ root: Int) {
    var group: [Int] = []
    while let vertex = stack.popLast() {
      isOpen[vertex] = false
      group.append(vertex)
      if vertex == root { break }
    }
    groups.append(group.sorted())
  }
}

extension GraphDraft {
  /// Puts the nodes in order, upstream before downstream; nodes of a cycle stay in the file's order.
  mutating func putInOrder() {
    var successors = Array(repeating: [Int](), count: nodes.count)
    for (_, _, from, to) in wired { successors[from.node].append(to.node) }
    order = StrongComponents(successors: successors).groups.flatMap(\.self)
  }

  /// True when what comes in at one port goes out at the other in the same call.
  func isSynchronous(_ node: Int, from input: Int, to output: Int) -> Bool {
    guard let contract = nodes[node].contract else { return false }
    let from = nodes[node].inputs[input].contract.name
    let to = nodes[node].outputs[output].contract.name
    return !contract.asynchronousPaths.contains { $0.from == from && $0.to == to }
  }
}
