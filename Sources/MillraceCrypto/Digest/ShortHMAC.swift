/// HMAC-SHA256 (RFC 2104, FIPS 180-4) of short messages with one key, again and again, without asking for memory.
///
/// It is for frames that are signed in real time. `HMAC` takes messages of any length and is faster from 128 bytes on, but asks for
/// memory with each. The key is prepared once; a code costs as many rounds of SHA-256 as the message has blocks of 64 bytes, and two more.
/// Use a value from one thread at a time. The prepared key is never printed.
public struct ShortHMAC: Sendable {
  /// The longest message, in bytes.
  public static let longestMessage = 256
  /// Bytes of a code.
  public static let codeBytes = 32

  private static let blockBytes = 64

  /// The state of SHA-256 behind the inner and the outer key block.
  private let inner: Block.State
  private let outer: Block.State

  /// Prepares a key of any length.
  public init(key: SecretKey) {
    // RFC 2104: a key that is longer than a block is replaced by its digest.
    var bytes = unsafe key.withBytes { unsafe Array($0) }
    if bytes.count > Self.blockBytes { bytes = SHA256.hash(bytes.span) }
    bytes += [UInt8](repeating: 0, count: Self.blockBytes - bytes.count)
    inner = Self.prepared(bytes, 0x36)
    outer = Self.prepared(bytes, 0x5C)
    for index in bytes.indices { bytes[index] = 0 }
  }

  private static func prepared(_ key: [UInt8], _ mask: UInt8) -> Block.State {
    var block = Block()
    for byte in key { block.append(byte ^ mask) }
    return block.state
  }

  /// Writes the code of a message, or its first bytes.
  /// - Parameters:
  ///   - message: at most `longestMessage` bytes; the rest is not read.
  ///   - more: bytes that follow the message.
  ///   - code: receives as many bytes of the code as it has room for, `codeBytes` at most.
  public func write(
    _ message: Span<UInt8>, _ more: Span<UInt8> = Span(), to code: inout MutableSpan<UInt8>
  ) {
    var block = Block(inner, bytes: Self.blockBytes)
    for index in 0..<min(message.count, Self.longestMessage) { block.append(message[index]) }
    for index in 0..<min(more.count, Self.longestMessage) { block.append(more[index]) }
    let digest = block.finished()
    var last = Block(outer, bytes: Self.blockBytes)
    for index in 0..<Self.codeBytes { last.append(digest.byte(index)) }
    let result = last.finished()
    for index in 0..<min(code.count, Self.codeBytes) { code[index] = result.byte(index) }
  }
}

extension ShortHMAC: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The same text for every key.
  public var description: String { "ShortHMAC(hidden)" }
  /// The same text for every key.
  public var debugDescription: String { description }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// SHA-256 of what is appended.
private struct Block {
  struct State: Sendable {
    var words: InlineArray<8, UInt32> = [
      0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]

    func byte(_ index: Int) -> UInt8 {
      UInt8(truncatingIfNeeded: words[index / 4] >> UInt32(8 * (3 - index % 4)))
    }
  }

  private(set) var state = State()
  private var words = InlineArray<16, UInt32>(repeating: 0)
  private var filled = 0
  private var count = 0

  init() {}

  init(_ state: State, bytes: Int) {
    self.state = state
    count = bytes
  }

  mutating func append(_ byte: UInt8) {
    words[filled / 4] = words[filled / 4] << 8 | UInt32(byte)
    filled += 1
    count += 1
    guard filled == 64 else { return }
    compress()
    filled = 0
  }

  /// FIPS 180-4 section 5.1.1: a one, zeros, and the length in bits.
  mutating func finished() -> State {
    let bits = UInt64(count) * 8
    append(0x80)
    while filled != 56 { append(0) }
    for index in 0..<8 { append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * (7 - index)))) }
    return state
  }

  /// FIPS 180-4 section 6.2.2.
  private mutating func compress() {
    var (a, b, c, d) = (state.words[0], state.words[1], state.words[2], state.words[3])
    var (e, f, g, h) = (state.words[4], state.words[5], state.words[6], state.words[7])
    for round in 0..<64 {
      if round >= 16 {
        let (old, recent) = (words[(round + 1) & 15], words[(round + 14) & 15])
        let first = Self.turned(old, 7) ^ Self.turned(old, 18) ^ old >> 3
        let second = Self.turned(recent, 17) ^ Self.turned(recent, 19) ^ recent >> 10
        words[round & 15] = words[round & 15] &+ first &+ words[(round + 9) & 15] &+ second
      }
      let sum = Self.turned(e, 6) ^ Self.turned(e, 11) ^ Self.turned(e, 25)
      let choice = e & f ^ ~e & g
      let first = h &+ sum &+ choice &+ Self.constants[round] &+ words[round & 15]
      let other = Self.turned(a, 2) ^ Self.turned(a, 13) ^ Self.turned(a, 22)
      let majority = a & b ^ a & c ^ b & c
      (h, g, f, e) = (g, f, e, d &+ first)
      (d, c, b, a) = (c, b, a, first &+ other &+ majority)
    }
    let words: InlineArray<8, UInt32> = [a, b, c, d, e, f, g, h]
    for index in 0..<8 { state.words[index] &+= words[index] }
  }

  private static func turned(_ word: UInt32, _ bits: UInt32) -> UInt32 { word >> bits | word << (32 - bits) }

  /// FIPS 180-4 section 4.2.2.
  private static let constants: InlineArray<64, UInt32> = [
    0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
    0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
    0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
    0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
    0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
    0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
    0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
    0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
  ]
}
