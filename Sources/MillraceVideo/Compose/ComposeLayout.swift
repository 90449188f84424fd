internal import MillraceCore

/// Arranges several pictures on one: in a grid, or as insets over the first one.
///
/// The four layouts are those of NetEase's interactive live video (`NIMNetCallVideoMixMode`: floating right, floating left, lattice fit,
/// lattice fill).
enum ComposeLayout: String, CaseIterable, Sendable {
  /// The first picture full size, the others in a column at the right edge, from the lower corner up.
  case floatRight
  /// The same at the left edge.
  case floatLeft
  /// A grid of equal cells, every picture whole.
  case gridFit
  /// A grid of equal cells, every picture cropped to fill its cell.
  case gridFill

  /// The cell of a picture.
  struct Cell: Equatable {
    var place: PictureRect
    /// True: cropped to fill the cell. False: whole, letterboxed.
    var fills: Bool
  }

  /// Size of insets as a fraction of the output, and space around them in pixels.
  struct Inset {
    var share: Double
    var margin: Int
  }

  /// The cells of `count` pictures, at least one, in the order of the inputs. Cells start at even pixels.
  func cells(_ count: Int, width: Int, height: Int, inset: Inset) -> [Cell] {
    let whole = PictureRect(left: 0, top: 0, width: width, height: height)
    switch self {
    case .floatRight, .floatLeft:
      return [Cell(place: whole, fills: false)]
        + Self.column(count - 1, whole, inset, isRight: self == .floatRight).map {
          Cell(place: $0, fills: true)
        }
    case .gridFit, .gridFill:
      return Self.grid(count, whole).map { Cell(place: $0, fills: self == .gridFill) }
    }
  }

  /// Insets in a column, shrunk if they would not all fit.
  private static func column(
    _ count: Int, _ whole: PictureRect, _ inset: Inset, isRight: Bool
  ) -> [PictureRect] {
    guard count > 0 else { return [] }
    let room = Double(whole.height - (count + 1) * inset.margin) / Double(count)
    let height = max(2, min(Double(whole.height) * inset.share, room))
    let size = (
      max(2, even(height * Double(whole.width) / Double(whole.height))), max(2, even(height))
    )
    let left = max(
      0, isRight ? even(Double(whole.width - size.0 - inset.margin)) : even(Double(inset.margin)))
    return (0..<count).map { index in
      let top = whole.height - (index + 1) * (size.1 + inset.margin)
      return PictureRect(left: left, top: max(0, even(Double(top))), width: size.0, height: size.1)
    }
  }

  /// Equal cells in rows; the last row is centred.
  private static func grid(_ count: Int, _ whole: PictureRect) -> [PictureRect] {
    let side = Int(Double(count).squareRoot().rounded(.up))
    let isWide = whole.width >= whole.height
    let columns = isWide ? side : (count + side - 1) / side
    let rows = isWide ? (count + side - 1) / side : side
    let (width, height) = (cut(whole.width, columns), cut(whole.height, rows))
    return (0..<count).map { index in
      let (row, column) = (index / columns, index % columns)
      let inRow = min(columns, count - row * columns)
      let left = (whole.width - inRow * width) / 4 * 2 + column * width
      return PictureRect(
        left: left, top: (whole.height - rows * height) / 4 * 2 + row * height, width: width, height: height)
    }
  }

  /// A length divided into equal even parts; a single part keeps the length.
  private static func cut(_ length: Int, _ parts: Int) -> Int {
    parts == 1 ? length : max(2, length / parts / 2 * 2)
  }

  private static func even(_ length: Double) -> Int { Int((length / 2).rounded(.down)) * 2 }
}
