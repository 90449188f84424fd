/// Times at which something is due, one for each key, earliest first.
///
/// A binary heap whose entries can be moved and removed, so that it never holds more than what is waiting: a token that ends tomorrow
/// leaves nothing behind when its member goes today. Setting and removing take logarithmic time. The unit is the caller's.
struct Deadlines<Key: Hashable & Sendable>: Sendable {
  private struct Entry: Sendable {
    let key: Key
    let time: Int64
  }

  private var heap: [Entry] = []
  private var places: [Key: Int] = [:]

  var count: Int { heap.count }

  /// The earliest time.
  var next: Int64? { heap.first?.time }

  /// The time of a key.
  subscript(key: Key) -> Int64? { places[key].map { heap[$0].time } }

  /// Sets the time of a key, in place of the one before.
  mutating func set(_ key: Key, _ time: Int64) {
    remove(key)
    heap.append(Entry(key: key, time: time))
    places[key] = heap.count - 1
    rise(heap.count - 1)
  }

  /// Removes a key, if it is there.
  mutating func remove(_ key: Key) {
    guard let place = places.removeValue(forKey: key) else { return }
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    places[last.key] = place
    rise(place)
    sink(place)
  }

  /// Removes and returns the earliest key whose time has come.
  mutating func popDue(at now: Int64) -> Key? {
    guard let first = heap.first, first.time <= now else { return nil }
    remove(first.key)
    return first.key
  }

  private mutating func rise(_ start: Int) {
    var place = start
    while place > 0, heap[place].time < heap[(place - 1) / 2].time {
      exchange(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func sink(_ start: Int) {
    var place = start
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
        if heap[child].time < heap[least].time { least = child }
      }
      guard least != place else { return }
      exchange(place, least)
      place = least
    }
  }

  private mutating func exchange(_ first: Int, _ second: Int) {
    heap.swapAt(first, second)
    places[heap[first].key] = first
    places[heap[second].key] = second
  }
}
