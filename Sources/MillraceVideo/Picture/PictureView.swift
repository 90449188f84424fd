internal import CFFmpeg
package import CMediaShim
package import MillraceCore

/// A view of a raw picture: its planes, for as long as their memory is alive.
@safe
package struct PictureView: ~Escapable {
  /// Width and height in pixels.
  package let width: Int
  package let height: Int
  package let pixel: PixelType
  /// Start addresses and strides of as many planes as the pixel type has.
  package let planes: (UnsafePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>)
  package let strides: (Int, Int, Int)

  /// A picture without row padding.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>, _ pixel: PixelType, width: Int, height: Int) {
    precondition(
      bytes.count >= pixel.byteCount(width: width, height: height), "too few bytes for the picture")
    // The planes live as long as their span; the lifetime annotation above lets the compiler check that.
    let start = unsafe bytes.withUnsafeBufferPointer { $0.baseAddress }
    guard let start = unsafe start else { fatalError("a picture has at least one pixel") }
    let view = unsafe PictureView(start, pixel, width: width, height: height)
    self = unsafe _overrideLifetime(view, copying: bytes)
  }

  /// A picture without row padding, by its start address.
  @unsafe
  @_lifetime(borrow start)
  package init(_ start: UnsafePointer<UInt8>, _ pixel: PixelType, width: Int, height: Int) {
    self.width = width
    self.height = height
    self.pixel = pixel
    let layout = PlaneLayout(pixel, width: width, height: height)
    unsafe planes = (
      start + layout.offsets.0, start + layout.offsets.1, start + layout.offsets.2
    )
    strides = layout.strides
  }

  /// A planar 4:2:0 picture that may have row padding.
  @unsafe
  @_lifetime(borrow y)
  package init(
    y: UnsafePointer<UInt8>, u: UnsafePointer<UInt8>, v: UnsafePointer<UInt8>, lumaStride: Int,
    chromaStride: Int, width: Int, height: Int
  ) {
    self.width = width
    self.height = height
    pixel = .i420
    unsafe planes = (y, u, v)
    strides = (lumaStride, chromaStride, chromaStride)
  }

  /// Passes the planes to the C encoder.
  package borrowing func withPlanes<Answer>(_ body: (inout millrace_jpeg_picture) -> Answer) -> Answer {
    precondition(pixel == .i420, "only planar 4:2:0 can be encoded")
    var picture = unsafe millrace_jpeg_picture(
      width: Int32(width), height: Int32(height), y: planes.0, u: planes.1, v: planes.2,
      y_stride: strides.0, chroma_stride: strides.1)
    return unsafe body(&picture)
  }
}

/// Offsets and strides of the planes of a picture without row padding.
struct PlaneLayout {
  let offsets: (Int, Int, Int)
  let strides: (Int, Int, Int)

  init(_ pixel: PixelType, width: Int, height: Int) {
    let (luma, half) = (width * height, (width + 1) / 2)
    switch pixel {
    case .i420:
      offsets = (0, luma, luma + half * ((height + 1) / 2))
      strides = (width, half, half)
    case .nv12:
      offsets = (0, luma, luma)
      strides = (width, 2 * half, 0)
    case .rgb24:
      offsets = (0, 0, 0)
      strides = (3 * width, 0, 0)
    case .bgrx:
      offsets = (0, 0, 0)
      strides = (4 * width, 0, 0)
    }
  }
}

extension PixelType {
  /// Number of planes.
  var planeCount: Int {
    switch self {
    case .i420: 3
    case .nv12: 2
    case .rgb24, .bgrx: 1
    }
  }

  /// Bytes per pixel in the first plane.
  var pixelBytes: Int {
    switch self {
    case .i420, .nv12: 1
    case .rgb24: 3
    case .bgrx: 4
    }
  }

  /// FFmpeg's pixel format.
  var library: Int32 {
    switch self {
    case .i420: millrace_av_pixel_i420
    case .nv12: millrace_av_pixel_nv12
    case .rgb24: millrace_av_pixel_rgb24
    case .bgrx: millrace_av_pixel_bgrx
    }
  }

  /// The names, as a parameter's choice lists them.
  static let choice = ParameterContract.Kind.choice(allCases.map(\.rawValue))
}
