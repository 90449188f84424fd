public import MillraceCore

/// Formats numbers for listings, drawings and reports: few digits, with their unit.
///
/// Independent of the locale: the decimal separator is always a point.
public enum Figures {
  /// A number with at most so many decimals, without trailing zeros: `12.5`, `3`. Not finite: `-`.
  public static func number(_ value: Double, decimals: Int = 1) -> String {
    var text = fixed(value, decimals: decimals)
    guard text.contains(".") else { return text }
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text == "-0" ? "0" : text
  }

  /// A number with exactly so many decimals (0 to 9): `12.50`. Not finite, or over 9e18 when scaled: `-`.
  public static func fixed(_ value: Double, decimals: Int) -> String {
    let decimals = min(max(decimals, 0), 9)
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    let scaled = (value * scale).rounded(.toNearestOrAwayFromZero)
    guard scaled.magnitude < 9e18 else { return "-" }
    let digits = String(UInt64(scaled.magnitude))
    let sign = scaled < 0 ? "-" : ""
    guard decimals > 0 else { return sign + digits }
    let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }

  /// A duration in a suitable unit: `0`, `250 ns`, `62.5 us`, `20 ms`, `1.5 s`, `2 min 5 s`.
  public static func duration(_ time: Nanoseconds) -> String {
    let size = time.magnitude
    let value = Double(time)
    if size == 0 { return "0" }
    if size < 1_000 { return "\(time) ns" }
    if size < 1_000_000 { return "\(number(value / 1e3)) us" }
    if size < 1_000_000_000 { return "\(number(value / 1e6)) ms" }
    if size < 120_000_000_000 { return "\(number(value / 1e9)) s" }
    let seconds = Int(time / 1_000_000_000)
    return "\(seconds / 60) min \(seconds % 60) s"
  }

  /// A duration in milliseconds: `0.5 ms`.
  public static func milliseconds(_ time: Nanoseconds) -> String {
    "\(number(Double(time) / 1e6)) ms"
  }

  /// A number of bytes, in powers of 1024: `640 B`, `30 KiB`, `1.5 MiB`. `Int.max`, at which sums of bytes saturate, is 8192 PiB.
  public static func bytes(_ count: Int) -> String {
    let value = Double(count)
    if count < 1 << 10 { return "\(count) B" }
    if count < 1 << 20 { return "\(number(value / 1024)) KiB" }
    if count < 1 << 30 { return "\(number(value / 1_048_576)) MiB" }
    if count < 1 << 40 { return "\(number(value / 1_073_741_824)) GiB" }
    if count < 1 << 50 { return "\(number(value / 1_099_511_627_776)) TiB" }
    return "\(number(value / 1_125_899_906_842_624)) PiB"
  }

  /// A number with a noun: `1 node`, `3 nodes`.
  public static func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }
}
