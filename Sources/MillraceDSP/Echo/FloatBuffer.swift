/// A fixed-size float buffer, aligned to 64 bytes, freed with its owner.
///
/// Elements are accessed by index; `start` is for kernels and transforms.
@safe struct FloatBuffer: ~Copyable {
  /// The first element.
  let start: UnsafeMutablePointer<Float>
  let count: Int

  /// Allocates `count` floats.
  init(_ count: Int, _ value: Float = 0) {
    self.count = count
    let raw = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Float>.stride, alignment: 64)
    unsafe start = raw.bindMemory(to: Float.self, capacity: count)
    unsafe start.initialize(repeating: value, count: count)
  }

  deinit { unsafe start.deallocate() }

  subscript(index: Int) -> Float {
    @inline(__always) get {
      assert(index >= 0 && index < count)
      return unsafe start[index]
    }
    @inline(__always) nonmutating set {
      assert(index >= 0 && index < count)
      unsafe start[index] = newValue
    }
  }

  /// Sets `length` elements from `from` on.
  func fill(_ value: Float, from: Int = 0, count length: Int? = nil) {
    unsafe (start + from).update(repeating: value, count: length ?? count - from)
  }

  /// Copies `length` elements of another buffer, or of this one, overlapping or not.
  func copy(_ source: borrowing FloatBuffer, from: Int = 0, to: Int = 0, count length: Int) {
    assert(from >= 0 && from + length <= source.count && to >= 0 && to + length <= count)
    unsafe (start + to).update(from: source.start + from, count: length)
  }
}
