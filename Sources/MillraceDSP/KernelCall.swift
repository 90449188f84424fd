/// Calls a C kernel with the memory of two sample arrays; does nothing if either is empty.
@inline(__always)
func withSamples<Input, Output>(
  _ source: Span<Input>, _ destination: inout MutableSpan<Output>,
  _ kernel: (UnsafePointer<Input>, UnsafeMutablePointer<Output>) -> Void
) {
  unsafe source.withUnsafeBufferPointer { from in
    unsafe destination.withUnsafeMutableBufferPointer { to in
      guard let input = from.baseAddress, let output = to.baseAddress else { return }
      unsafe kernel(input, output)
    }
  }
}
