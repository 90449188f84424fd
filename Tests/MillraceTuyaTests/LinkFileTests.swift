import Glibc
import MillraceDialog
import MillraceService
import TestSystem
import Testing

@testable import MillraceTuya

@Suite("Tuya: files") struct LinkFileTests {
  @Test("a file is read in pieces")
  func pieces() throws {
    let folder = TemporaryFolder()
    put(0..<100 as Range<UInt8>, at: folder.file("a.json"))
    let file = try TuyaFileReader(folder.file("a.json"), most: 100)
    #expect(file.count == 100)
    #expect(file.name == "a.json")
    #expect(try file.read(offset: 10, count: 3).get() == [10, 11, 12])
    #expect(try file.read(offset: 99, count: 1).get() == [99])
  }

  @Test("a file that has shrunk since it was opened is an error")
  func shrinks() throws {
    let folder = TemporaryFolder()
    put(0..<100 as Range<UInt8>, at: folder.file("a"))
    let file = try TuyaFileReader(folder.file("a"), most: 100)
    put([1, 2, 3], at: folder.file("a"))
    guard case .failure(let error) = file.read(offset: 0, count: 100) else {
      Issue.record("more was read than is there")
      return
    }
    #expect(error.code == 39_009)
    #expect(error.text.contains("shorter"))
  }

  @Test("a path that leads to no file of this size is refused, without being repeated")
  func refused() {
    let folder = TemporaryFolder()
    put(0..<100 as Range<UInt8>, at: folder.file("large"))
    put([], at: folder.file("empty"))
    for path in [
      folder.file("missing-x"), folder.path, folder.file("large"), folder.file("empty"), "", "/dev/zero",
    ] {
      let error = #expect(throws: DialogError.self) { try TuyaFileReader(path, most: 99) }
      #expect(error?.code == 39_009)
      #expect(error?.scope == .command)
      #expect(path.isEmpty || error?.text.contains(path) == false)
    }
  }

  @Test(
    "a name of the cloud leads nowhere else",
    arguments: [
      ("a.json", "a.json"), ("../../etc/passwd", "passwd"), ("..\\..\\x.txt", "x.txt"), ("/abs/y", "y"),
      (".hidden", "hidden"),
      ("..", nil), ("", nil), ("/", nil), ("a\u{0}b\nc", "abc"), ("-rf", "rf"), ("图片 1.png", "图片 1.png"),
      ("$(x)`;|&<>", "x"),
    ] as [(String, String?)])
  func safe(_ name: String, _ expected: String?) { #expect(TuyaReceivedFile.safe(name) == expected) }

  @Test("a long name is cut to what file systems take")
  func long() {
    let name = TuyaReceivedFile.safe(String(repeating: "图", count: 1_000)) ?? ""
    #expect(name.utf8.count <= 128)
    #expect(!name.isEmpty)
  }

  @Test("files of one name get numbers, and none is overwritten")
  func numbers() {
    let folder = TemporaryFolder()
    for count in 1...3 as ClosedRange<UInt8> {
      let file = TuyaReceivedFile(
        folder: folder.path, name: "a.tar.gz", kind: .file, suffix: "bin", bytes: [count])
      guard case .message(.file(let path, "a.tar.gz", .file)) = file.store() else {
        Issue.record("it was not stored")
        return
      }
      #expect(contents(path) == [count])
    }
    #expect(folder.names == ["a.tar-1.gz", "a.tar-2.gz", "a.tar.gz"])
  }

  @Test("a link in the cache folder is not followed")
  func link() {
    let folder = TemporaryFolder()
    put([7], at: folder.file("target"))
    #expect(symlink(folder.file("target"), folder.file("a")) == 0)
    let file = TuyaReceivedFile(folder: folder.path, name: "a", kind: .file, suffix: "bin", bytes: [1])
    _ = file.store()
    #expect(contents(folder.file("target")) == [7])
  }

  @Test("a folder that is missing is reported, and nothing is lost in silence")
  func missing() {
    let file = TuyaReceivedFile(
      folder: "/nowhere-x/y", name: "a", kind: .file, suffix: "bin", bytes: [1])
    guard case .message(.failed(let error, call: 0)) = file.store() else {
      Issue.record("it was stored")
      return
    }
    #expect(error.text.contains("\"cache\""))
    #expect(error.category == .internal)
  }
}

@Suite("Tuya: pictures and frames of sound") struct LinkContentTests {
  /// A JPEG's head: a segment, and a frame header of 640 by 480.
  private let jpeg: [UInt8] = [
    0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xC0, 0, 17, 8, 1, 0xE0, 2, 0x80, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  ]
  private let png: [UInt8] =
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + [
      0, 0, 2, 128, 0, 0, 1, 224,
    ]

  @Test("the size of a picture is read from its head")
  func size() throws {
    for bytes in [jpeg, png] {
      let (width, height) = try #require(TuyaImageSize.read(bytes))
      #expect(width == 640)
      #expect(height == 480)
    }
    #expect(TuyaImageFormat(of: jpeg) == .jpeg)
    #expect(TuyaImageFormat(of: png) == .png)
    #expect(TuyaImageFormat(of: [1, 2, 3]) == nil)
  }

  @Test("a picture that is cut anywhere has no size, or the right one")
  func cut() {
    for bytes in [jpeg, png] {
      for count in 0..<bytes.count {
        if let (width, _) = TuyaImageSize.read(Array(bytes.prefix(count))) { #expect(width == 640) }
      }
    }
  }

  @Test("an Opus packet is brought to the constant size in every form", arguments: 0..<4 as Range<UInt8>)
  func opus(_ code: UInt8) throws {
    let packet: [UInt8] =
      switch code {
      case 2: [0xB8 | 2, 2, 1, 1, 9, 9, 9]
      case 3: [0xB8 | 3, 3, 7, 7, 7]
      default: [0xB8 | code, 5, 5, 6, 6]
      }
    for size in packet.count...600 {
      guard let padded = TuyaOpusFrame.padded(packet, to: size) else {
        // Code 2 has no byte for the number of frames yet, and is as long as before otherwise.
        Issue.record("no padding to \(size)")
        continue
      }
      #expect(padded.count == size)
      #expect(frames(padded) == frames(packet))
    }
  }

  @Test("an Opus packet that is empty or too large has no such form")
  func notOpus() {
    #expect(TuyaOpusFrame.padded([], to: 80) == nil)
    #expect(TuyaOpusFrame.padded([UInt8](repeating: 0, count: 81), to: 80) == nil)
    #expect(TuyaOpusFrame.padded([3], to: 80) == nil)
    #expect(TuyaOpusFrame.padded([3, 0], to: 80) == nil)
  }

  /// The frames of a packet, read as RFC 6716 section 3.2 says; frames here have at most 251 bytes.
  private func frames(_ packet: [UInt8]) -> [[UInt8]]? {
    var rest = packet.dropFirst()
    switch (packet.first ?? 0) & 3 {
    case 0: return [Array(rest)]
    case 1: return [Array(rest.prefix(rest.count / 2)), Array(rest.suffix(rest.count / 2))]
    case 2:
      let first = Int(rest.popFirst() ?? 0)
      return [Array(rest.prefix(first)), Array(rest.dropFirst(first))]
    default:
      let count = rest.popFirst() ?? 0
      var padding = 0
      if count & 0x40 != 0 {
        while let length = rest.popFirst() {
          padding += length == 255 ? 254 : Int(length)
          if length < 255 { break }
        }
      }
      guard padding <= rest.count else { return nil }
      rest = rest.dropLast(padding)
      let frames = Int(count & 0x3F)
      var sizes: [Int] = []
      if count & 0x80 != 0 {
        for _ in 1..<frames { sizes.append(Int(rest.popFirst() ?? 0)) }
        sizes.append(rest.count - sizes.reduce(0, +))
      } else {
        sizes = Array(repeating: rest.count / frames, count: frames)
      }
      return sizes.map { size in
        defer { rest = rest.dropFirst(size) }
        return Array(rest.prefix(size))
      }
    }
  }

  @Test("frames go together in packets, with the time of their first")
  func packing() {
    var stream = TuyaVoiceStream(TuyaVoice(.pcm, frame: 40, framesPerPacket: 2))
    check(stream.add([1], at: 1_000), nil)
    check(
      stream.add([2], at: 1_041), TuyaVoiceStream.Part(flag: .start, time: 1_000, position: 0, bytes: [1, 2]))
    check(stream.add([3], at: 1_090), nil)
    check(
      stream.add([4], at: 1_120),
      TuyaVoiceStream.Part(flag: .streaming, time: 1_080, position: 80_000, bytes: [3, 4]))
    check(stream.add([5], at: 1_160), nil)
    check(
      stream.end(isCut: false), TuyaVoiceStream.Part(flag: .end, time: 1_160, position: 160_000, bytes: [5]))
    #expect(!stream.hasBegun)
  }

  @Test("a stream that ends before its first packet is one packet, or none")
  func short() {
    let voice = TuyaVoice(.pcm, frame: 40, framesPerPacket: 5)
    var stream = TuyaVoiceStream(voice)
    check(stream.end(isCut: false), nil)
    _ = stream.add([1], at: 1_000)
    check(stream.end(isCut: false)?.flag, .onlyOne)
    _ = stream.add([1], at: 1_000)
    check(stream.end(isCut: true), nil)
  }

  @Test("a stream that is cut ends without what was kept")
  func cutStream() {
    var stream = TuyaVoiceStream(TuyaVoice(.pcm, frame: 40, framesPerPacket: 2))
    for _ in 0..<3 { _ = stream.add([1], at: 1_000) }
    check(stream.end(isCut: true), TuyaVoiceStream.Part(flag: .end, time: 1_080, position: 80_000, bytes: []))
  }

  @Test("frames of Opus have the size that the bit rate gives")
  func sizes() {
    #expect(TuyaVoice(.opus(bitRate: 48_000), frame: 40).frameBytes == 240)
    #expect(TuyaVoice(.opus(bitRate: 16_000), frame: 40).frameBytes == 80)
    #expect(TuyaVoice(.opus(bitRate: 16_000), frame: 60).frameBytes == 120)
    #expect(TuyaVoice(.pcm, frame: 40).frameBytes == 1_280)
  }
}
