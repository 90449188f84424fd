import MillraceCore

/// The strongly connected components of a directed graph, in topological order.
///
/// Tarjan's algorithm (1972) without recursion: a chain of a hundred thousand nodes must not overflow the stack.
struct StronglyConnectedComponents {
  /// The components, each in ascending order; a component comes before those it leads to. Independent components keep the order of
  /// their vertices.
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
    // Components are found in reverse order. Starting from the last vertex keeps the original order of independent ones.
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
  /// Sorts the nodes, upstream before downstream; the nodes of a cycle stay in the order of the file.
  mutating func sortNodes() {
    var successors = Array(repeating: [Int](), count: nodes.count)
    for (_, _, from, to) in wired { successors[from.node].append(to.node) }
    order = StronglyConnectedComponents(successors: successors).groups.flatMap(\.self)
  }

  /// True when packets of an input leave through an output in the same call.
  func isSynchronous(_ node: Int, from input: Int, to output: Int) -> Bool {
    guard let contract = nodes[node].contract else { return false }
    let from = nodes[node].inputs[input].contract.name
    let to = nodes[node].outputs[output].contract.name
    return !contract.asynchronousPaths.contains { $0.from == from && $0.to == to }
  }
}
