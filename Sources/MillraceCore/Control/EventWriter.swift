/// Writes the fields of one event as JSON directly into a block: no heap, no locale, no strings.
///
/// A field that does not fit is left out as a whole, later fields may still fit, and the event is marked with
/// `"truncated":true`. An event whose beginning (time, node, event) does not fit is not posted and counts as lost.
@safe
public struct EventWriter: ~Copyable, ~Escapable {
  /// Largest size of an event in bytes, unless the node's `resolve` gives its output `events` a larger shape. It is three times the
  /// longest event of the standard nodes (about 150 bytes), and 512 bytes together with the block's 64-byte header.
  public static var eventBytes: Int { 448 }

  @usableFromInline let start: UnsafeMutablePointer<UInt8>
  @usableFromInline let capacity: Int
  @usableFromInline var count: Int
  @usableFromInline var isTruncated = false

  /// Bytes reserved for the end of the object.
  @usableFromInline static var reserve: Int { 20 }

  @_lifetime(borrow start)
  init(_ start: UnsafeMutablePointer<UInt8>, capacity: Int, count: Int) {
    unsafe self.start = unsafe start
    self.capacity = capacity - Self.reserve
    self.count = count
  }

  /// Writes an integer field.
  @_lifetime(self: copy self)
  public mutating func field(_ name: StaticString, _ value: Int) {
    let mark = begin(name)
    integer(value)
    end(mark)
  }

  /// Writes a number with a fixed number of decimals (0 to 9). A value that is not finite is written as `null`.
  @_lifetime(self: copy self)
  public mutating func field(_ name: StaticString, _ value: Double, decimals: Int = 3) {
    let mark = begin(name)
    decimal(value, decimals: decimals)
    end(mark)
  }

  /// Writes a field that is `true` or `false`.
  @_lifetime(self: copy self)
  public mutating func field(_ name: StaticString, _ value: Bool) {
    let mark = begin(name)
    literal(value ? "true" : "false")
    end(mark)
  }

  /// Writes a constant text.
  @_lifetime(self: copy self)
  public mutating func field(_ name: StaticString, _ value: StaticString) {
    let mark = begin(name)
    byte(UInt8(ascii: "\""))
    for index in 0..<value.utf8CodeUnitCount { unsafe escaped(value.utf8Start[index]) }
    byte(UInt8(ascii: "\""))
    end(mark)
  }

  /// Writes UTF-8 bytes as a text with JSON escapes. The bytes are not validated.
  @_lifetime(self: copy self)
  public mutating func field(_ name: StaticString, utf8 value: Span<UInt8>) {
    let mark = begin(name)
    byte(UInt8(ascii: "\""))
    for index in value.indices { escaped(value[index]) }
    byte(UInt8(ascii: "\""))
    end(mark)
  }

  /// Writes a value that already is JSON, under a name that needs no escapes. Neither is validated.
  @_lifetime(self: copy self)
  public mutating func field(_ name: Span<UInt8>, json value: Span<UInt8>) {
    let mark = count
    byte(UInt8(ascii: ","))
    byte(UInt8(ascii: "\""))
    for index in name.indices { byte(name[index]) }
    byte(UInt8(ascii: "\""))
    byte(UInt8(ascii: ":"))
    for index in value.indices { byte(value[index]) }
    end(mark)
  }

  // MARK: Pieces

  /// True while everything written so far fits.
  var isWithin: Bool { count <= capacity }

  @_lifetime(self: copy self)
  mutating func begin(_ name: StaticString) -> Int {
    let mark = count
    byte(UInt8(ascii: ","))
    byte(UInt8(ascii: "\""))
    literal(name)
    byte(UInt8(ascii: "\""))
    byte(UInt8(ascii: ":"))
    return mark
  }

  @_lifetime(self: copy self)
  mutating func end(_ mark: Int) {
    if count > capacity {
      count = mark
      isTruncated = true
    }
  }

  /// Ends the object and returns its length.
  @_lifetime(self: copy self)
  mutating func finish() -> Int {
    // The reserve behind `capacity` holds either ending.
    let closing: StaticString = isTruncated ? ",\"truncated\":true}" : "}"
    for index in 0..<closing.utf8CodeUnitCount {
      unsafe start[count] = unsafe closing.utf8Start[index]
      count += 1
    }
    return count
  }

  @_lifetime(self: copy self)
  mutating func byte(_ value: UInt8) {
    // Past the capacity only the count grows; `end` then removes the whole field.
    if count < capacity { unsafe start[count] = value }
    count &+= 1
  }

  @_lifetime(self: copy self)
  mutating func literal(_ text: StaticString) {
    for index in 0..<text.utf8CodeUnitCount { unsafe byte(text.utf8Start[index]) }
  }

  @_lifetime(self: copy self)
  private mutating func escaped(_ value: UInt8) {
    switch value {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"):
      byte(UInt8(ascii: "\\"))
      byte(value)
    case 0..<0x20:
      literal("\\u00")
      hexadecimal(value &>> 4)
      hexadecimal(value & 15)
    default:
      byte(value)
    }
  }

  @_lifetime(self: copy self)
  private mutating func hexadecimal(_ digit: UInt8) {
    byte(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
  }

  @_lifetime(self: copy self)
  mutating func integer(_ value: Int) {
    if value < 0 { byte(UInt8(ascii: "-")) }
    unsigned(value.magnitude, minimumDigits: 1)
  }

  @_lifetime(self: copy self)
  private mutating func unsigned(_ value: UInt, minimumDigits: Int) {
    var divisor: UInt = 1
    var digits = 1
    while value / divisor >= 10 || digits < minimumDigits {
      divisor &*= 10
      digits &+= 1
    }
    while divisor > 0 {
      byte(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
      divisor /= 10
    }
  }

  @_lifetime(self: copy self)
  mutating func decimal(_ value: Double, decimals: Int) {
    var scale = 1.0
    for _ in 0..<min(max(decimals, 0), 9) { scale *= 10 }
    let scaled = (value * scale).rounded()
    guard scaled.magnitude < 9e18 else {
      // Not finite, or too large for a fixed-point number.
      literal("null")
      return
    }
    if scaled < 0 { byte(UInt8(ascii: "-")) }
    let number = UInt(scaled.magnitude)
    let unit = UInt(scale)
    unsigned(number / unit, minimumDigits: 1)
    if unit > 1 {
      byte(UInt8(ascii: "."))
      unsigned(number % unit, minimumDigits: min(max(decimals, 0), 9))
    }
  }
}
