/// A step of a thread in a model of a lock-free algorithm. Places are indices of the shared memory; `r` are the thread's own registers.
enum ModelStep {
  typealias Registers = [Int]

  /// How a store becomes visible.
  enum Order {
    /// Any time later, also behind later stores to other places.
    case relaxed
    /// Any time later, but behind all of the thread's earlier stores.
    case releasing
    /// At once, behind all earlier ones.
    case sequential
  }

  /// Where `jump` goes.
  case label(String)
  case store(Int, Order, (Registers) -> Int)
  /// Sees the thread's own stores, and of the others' those that are visible.
  case load(Int, into: Int)
  /// One indivisible step on a place, behind all of the thread's earlier stores; the old value goes into a register.
  case exchange(Int, into: Int, (_ old: Int, _ r: Registers) -> Int)
  /// Everything the thread has stored is visible behind it.
  case fence
  /// Everything that any thread has stored is visible behind it: membarrier(2).
  case barrierOfAll
  /// Sleeps until a memory place has a value of this kind.
  case sleep(Int, until: (Int) -> Bool)
  case set(Int, (Registers) -> Int)
  case jump(String, if: (Registers) -> Bool)
  /// Must hold whenever the thread gets here.
  case check(String, (_ memory: [Int], _ threads: [Registers]) -> Bool)
}

/// Explores every order in which the steps of a few threads can happen and their stores can become visible.
///
/// Stores wait in a buffer of their thread and leave it in any order that their own ordering allows, which is weaker than x86 and, for
/// stores, as weak as ARM. Loads happen in the order of the program: what a load may see too early is not modelled.
struct Interleavings {
  /// Registers a thread has.
  static let registers = 4

  private struct Store: Hashable {
    var place: Int
    var value: Int
    var isReleasing: Bool
  }

  private struct Thread: Hashable {
    var next = 0
    var registers = [Int](repeating: 0, count: Interleavings.registers)
    var buffer: [Store] = []
  }

  private struct State: Hashable {
    var memory: [Int]
    var threads: [Thread]
  }

  /// What is wrong with the algorithm, or nil.
  private(set) var finding: String?
  /// States seen.
  private(set) var count = 0

  private let programs: [[ModelStep]]
  private let places: [[String: Int]]
  private let settled: ([Int], [ModelStep.Registers]) -> String?

  /// - Parameters:
  ///   - memory: the shared places at first.
  ///   - programs: one a thread.
  /// - settled: what is wrong when no thread can continue, each being finished or asleep forever.
  init(
    memory: [Int], _ programs: [[ModelStep]],
    settled: @escaping (_ memory: [Int], _ threads: [ModelStep.Registers]) -> String?
  ) {
    self.programs = programs
    self.settled = settled
    places = programs.map { program in
      var labels: [String: Int] = [:]
      for (index, step) in program.enumerated() { if case .label(let name) = step { labels[name] = index } }
      return labels
    }
    explore(
      State(
        memory: memory,
        threads: programs.indices.map { number in
          var thread = Thread()
          runAlone(number, &thread)
          return thread
        }))
  }

  private mutating func explore(_ first: State) {
    var seen: Set<State> = [first]
    var open = [first]
    while let state = open.popLast(), finding == nil {
      count += 1
      let following = dependents(of: state)
      if following.isEmpty { finding = settled(state.memory, state.threads.map(\.registers)) }
      for state in following where seen.insert(state).inserted { open.append(state) }
    }
  }

  private mutating func dependents(of state: State) -> [State] {
    var following: [State] = []
    for number in state.threads.indices {
      for index in state.threads[number].buffer.indices where mayLeave(index, state.threads[number].buffer) {
        var after = state
        let store = after.threads[number].buffer.remove(at: index)
        after.memory[store.place] = store.value
        following.append(after)
      }
      if let after = step(number, of: state) { following.append(after) }
    }
    return following
  }

  /// True when nothing before a store keeps it in the buffer.
  private func mayLeave(_ index: Int, _ buffer: [Store]) -> Bool {
    let earlier = buffer[..<index]
    return earlier.isEmpty
      || !buffer[index].isReleasing && !earlier.contains { $0.place == buffer[index].place }
  }

  /// The state after a thread's next step; nil when it is at its end, sleeps, or waits for its stores.
  private mutating func step(_ number: Int, of state: State) -> State? {
    var after = state
    var thread = state.threads[number]
    guard thread.next < programs[number].count else { return nil }
    let step = programs[number][thread.next]
    thread.next += 1
    switch step {
    case .label, .set, .jump: break
    case .store(let place, .sequential, let value):
      guard thread.buffer.isEmpty else { return nil }
      after.memory[place] = value(thread.registers)
    case .store(let place, let order, let value):
      thread.buffer.append(
        Store(place: place, value: value(thread.registers), isReleasing: order == .releasing))
    case .load(let place, let register):
      thread.registers[register] = thread.buffer.last { $0.place == place }?.value ?? state.memory[place]
    case .exchange(let place, let register, let update):
      guard thread.buffer.isEmpty else { return nil }
      let old = state.memory[place]
      after.memory[place] = update(old, thread.registers)
      thread.registers[register] = old
    case .fence: guard thread.buffer.isEmpty else { return nil }
    case .barrierOfAll: guard state.threads.allSatisfy(\.buffer.isEmpty) else { return nil }
    case .sleep(let place, let condition): guard condition(state.memory[place]) else { return nil }
    case .check(let words, let holds):
      if !holds(state.memory, state.threads.map(\.registers)) { finding = words }
    }
    runAlone(number, &thread)
    after.threads[number] = thread
    return after
  }

  /// Steps that touch nothing shared happen together with the one before them: other threads cannot observe the difference.
  private func runAlone(_ number: Int, _ thread: inout Thread) {
    while thread.next < programs[number].count {
      switch programs[number][thread.next] {
      case .label: thread.next += 1
      case .set(let register, let value):
        thread.registers[register] = value(thread.registers)
        thread.next += 1
      case .jump(let label, let condition):
        thread.next = condition(thread.registers) ? places[number][label] ?? thread.next + 1 : thread.next + 1
      default: return
      }
    }
  }
}
