internal import MillraceCore

/// An input of `video.compose`: its newest picture, and that picture scaled to its cell.
@safe
final class ComposedInput {
  let width: Int
  let height: Int
  private let pixel: PixelType
  private var newest: Packet?
  private var scaler: PictureScaler?
  private var cell: ComposeLayout.Cell?
  private var isScaled = false
  /// When the newest picture arrived, on the graph's clock.
  private(set) var came: Nanoseconds = 0
  var hasStalled = false

  init(_ pixel: PixelType, width: Int, height: Int) {
    self.pixel = pixel
    self.width = width
    self.height = height
  }

  /// True once it has a picture.
  private(set) var hasPicture = false

  /// Replaces the picture.
  func take(_ picture: consuming Packet, at now: Nanoseconds) {
    newest = consume picture
    hasPicture = true
    came = now
    isScaled = false
  }

  /// Scales a new picture to a cell and draws it. False if swscale refuses the sizes. Allocates only when the cell changes.
  func draw(
    _ wanted: ComposeLayout.Cell, onto target: inout MutableSpan<UInt8>, width canvasWidth: Int,
    height canvasHeight: Int
  ) -> Bool {
    let place = wanted.fills ? wanted.place : wanted.place.fitting(width: width, height: height)
    if cell != wanted {
      cell = wanted
      scaler = PictureScaler(to: .i420, width: place.width, height: place.height)
      isScaled = false
    }
    guard let scaler else { return false }
    if !isScaled {
      guard scale(wanted, with: scaler) else { return false }
      isScaled = true
    }
    scaler.copy(
      onto: &target, width: canvasWidth, height: canvasHeight, left: place.left, top: place.top)
    return true
  }

  private func scale(_ wanted: ComposeLayout.Cell, with scaler: PictureScaler) -> Bool {
    guard let packet = newest.take() else { return false }
    let isScaled = scale(packet, wanted, with: scaler)
    newest = consume packet
    return isScaled
  }

  private func scale(
    _ packet: borrowing Packet, _ wanted: ComposeLayout.Cell, with scaler: PictureScaler
  ) -> Bool {
    let view = PictureView(packet.samples(of: UInt8.self), pixel, width: width, height: height)
    guard wanted.fills else { return scaler.scale(view) }
    let part = wanted.place.filling(width: width, height: height)
    return scaler.scale(view, left: part.left, top: part.top, width: part.width, height: part.height)
  }
}
