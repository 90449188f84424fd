internal import MillraceCore

/// Colours and fonts of the SVG drawing, for light and dark pages.
///
/// Every rule is repeated for the dark scheme: not every SVG renderer supports CSS variables. All text has a contrast of at least 4.5
/// to 1 (WCAG 2.2, level AA).
enum SVGStyle {
  /// A colour of both schemes.
  struct Colour {
    let name: String
    let light: String
    let dark: String
  }

  static let paper = Colour(name: "paper", light: "#f7f8fa", dark: "#12161b")
  static let box = Colour(name: "box", light: "#ffffff", dark: "#1c2229")
  static let edge = Colour(name: "edge", light: "#cfd6de", dark: "#3a4550")
  static let ink = Colour(name: "ink", light: "#16202b", dark: "#e9eef3")
  static let mute = Colour(name: "mute", light: "#586573", dark: "#9dabb8")

  /// The colour of a lane.
  static func colour(of lane: Lane) -> Colour {
    switch lane {
    case .voice: Colour(name: "voice", light: "#0b756c", dark: "#45ccbd")
    case .bulk: Colour(name: "bulk", light: "#a54b08", dark: "#f2ae57")
    case .external: Colour(name: "external", light: "#6d3fcb", dark: "#b99cf7")
    }
  }

  /// A family of formats with a colour of its own.
  enum Family: String, CaseIterable {
    case pcm, coded, picture, text, event

    init(_ kind: Format.Kind) {
      switch kind {
      case .pcm: self = .pcm
      case .opus, .mp3, .ogg, .aac: self = .coded
      case .video, .jpeg, .png, .h264, .vp8: self = .picture
      case .text: self = .text
      case .event: self = .event
      }
    }

    var label: String {
      switch self {
      case .pcm: "samples"
      case .coded: "coded audio"
      case .picture: "pictures"
      case .text: "text"
      case .event: "events"
      }
    }

    var colour: Colour {
      switch self {
      case .pcm: Colour(name: rawValue, light: "#1f62c4", dark: "#74acff")
      case .coded: Colour(name: rawValue, light: "#b93a0a", dark: "#ff9d69")
      case .picture: Colour(name: rawValue, light: "#a01aac", dark: "#e691f2")
      case .text: Colour(name: rawValue, light: "#46700d", dark: "#a6d860")
      case .event: Colour(name: rawValue, light: "#5b6b80", dark: "#9aabc0")
      }
    }
  }

  /// The style sheet of a drawing.
  static var sheet: String {
    let lanes = Lane.allCases.map(colour(of:))
    let families = Family.allCases.map(\.colour)
    func rules(_ pick: (Colour) -> String) -> String {
      var lines = [
        ".paper{fill:\(pick(paper))}", ".box{fill:\(pick(box));stroke:\(pick(edge))}",
        ".rule{stroke:\(pick(edge))}", ".name,.title,.value{fill:\(pick(ink))}",
        ".mute,.label{fill:\(pick(mute))}", ".label{stroke:\(pick(paper))}",
        ".open{fill:\(pick(box));stroke:\(pick(mute))}",
        ".port{stroke:\(pick(box))}",
      ]
      for colour in lanes { lines.append(".lane-\(colour.name){fill:\(pick(colour))}") }
      for colour in families {
        lines.append(".route-\(colour.name){stroke:\(pick(colour))}.dot-\(colour.name){fill:\(pick(colour))}")
      }
      return lines.joined(separator: "\n")
    }
    return """
      text{font-family:system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif;font-size:11px}
      .title{font-size:20px;font-weight:650}
      .name{font-size:14px;font-weight:650}
      .small{font-size:10.5px}
      .pill{font-size:10px;text-anchor:middle}
      .number{font-variant-numeric:tabular-nums}
      .end{text-anchor:end}
      .middle{text-anchor:middle}
      .label{stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
      .route{fill:none;stroke-width:2px;stroke-linecap:round}
      .feedback{stroke-dasharray:6 5}
      .box,.rule,.open{stroke-width:1px}
      .open{stroke-width:1.5px}
      .port{stroke-width:1.5px}
      .tint{fill-opacity:.14}
      \(rules(\.light))
      @media (prefers-color-scheme:dark){
      \(rules(\.dark))
      }
      """
  }
}
