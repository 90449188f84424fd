internal import MillraceCore
internal import MillraceDSP

/// Converts PCM to another sample type and channel count at the same rate, and sanitises floats. Memory is allocated in `init`.
@safe
struct FormatConverter: ~Copyable {
  let inputFrameBytes: Int
  let outputFrameBytes: Int
  private let from: SampleType
  private let to: SampleType
  /// nil: the channels are unchanged.
  private let matrix: ChannelMatrix?
  /// Intermediate floats, if both type and channels change.
  private let middle: UnsafeMutableBufferPointer<Float>
  /// A converted packet.
  private let result: UnsafeMutableRawBufferPointer

  /// Makes a converter between two PCM formats for packets of up to `longest` samples per channel.
  init(from input: Format, to output: Format, matrix gains: [Float]?, longest: Int) {
    guard case .pcm(_, let inputs, let from) = input, case .pcm(_, let outputs, let to) = output else {
      fatalError("only audio can be converted")
    }
    self.from = from
    self.to = to
    inputFrameBytes = inputs * from.byteCount
    outputFrameBytes = outputs * to.byteCount
    if let gains {
      matrix = ChannelMatrix(inputs: inputs, outputs: outputs, gains: gains)
    } else {
      matrix = inputs == outputs ? nil : ChannelMatrix(inputs: inputs, outputs: outputs)
    }
    unsafe middle = .allocate(capacity: longest * max(inputs, outputs))
    unsafe middle.initialize(repeating: 0)
    unsafe result = .allocate(byteCount: longest * outputFrameBytes, alignment: 64)
  }

  deinit {
    unsafe middle.deallocate()
    unsafe result.deallocate()
  }

  /// True when nothing changes.
  var isIdentity: Bool { from == to && matrix == nil }

  /// Converts a packet and appends it to a queue.
  func append(_ packet: borrowing Packet, to queue: inout FrameQueue) {
    guard !isIdentity || to == .f32 else { return queue.append(packet.samples(of: UInt8.self)) }
    let count = Int(packet.byteCount) / inputFrameBytes * outputFrameBytes
    let raw = unsafe result.bindMemory(to: UInt8.self).extracting(0..<count)
    var bytes = unsafe MutableSpan(_unsafeElements: raw)
    convert(packet, into: &bytes)
    queue.append(bytes.span)
  }

  /// Converts a packet; `bytes` has exactly the required size and is aligned for the sample type.
  func convert(_ packet: borrowing Packet, into bytes: inout MutableSpan<UInt8>) {
    unsafe bytes.withUnsafeMutableBufferPointer { raw in
      switch to {
      case .s16:
        let typed = unsafe UnsafeMutableRawBufferPointer(raw).bindMemory(to: Int16.self)
        var target = unsafe MutableSpan(_unsafeElements: typed)
        convert(packet, toInt16: &target)
      case .f32:
        let typed = unsafe UnsafeMutableRawBufferPointer(raw).bindMemory(to: Float.self)
        var target = unsafe MutableSpan(_unsafeElements: typed)
        convert(packet, toFloat: &target)
      }
    }
  }

  private func convert(_ packet: borrowing Packet, toInt16 target: inout MutableSpan<Int16>) {
    switch (from, matrix) {
    case (.s16, nil):
      let source = packet.samples(of: Int16.self)
      for index in target.indices { target[index] = source[index] }
    case (.s16, let matrix?):
      matrix.apply(packet.samples(of: Int16.self), into: &target)
    case (.f32, nil):
      SampleConversion.convert(packet.samples(of: Float.self), into: &target)
    case (.f32, let matrix?):
      var floats = unsafe MutableSpan(_unsafeElements: middle.extracting(0..<target.count))
      matrix.apply(packet.samples(of: Float.self), into: &floats)
      SampleConversion.convert(floats.span, into: &target)
    }
  }

  private func convert(_ packet: borrowing Packet, toFloat target: inout MutableSpan<Float>) {
    switch (from, matrix) {
    case (.f32, nil):
      let source = packet.samples(of: Float.self)
      for index in target.indices { target[index] = source[index] }
      SampleMath.sanitize(&target)
    case (.f32, let matrix?):
      matrix.apply(packet.samples(of: Float.self), into: &target)
      SampleMath.sanitize(&target)
    case (.s16, nil):
      SampleConversion.convert(packet.samples(of: Int16.self), into: &target)
    case (.s16, let matrix?):
      let source = packet.samples(of: Int16.self)
      var floats = unsafe MutableSpan(_unsafeElements: middle.extracting(0..<source.count))
      SampleConversion.convert(source, into: &floats)
      matrix.apply(floats.span, into: &target)
    }
  }
}
