/// The peer for `Tests/Interop/net.py`: a MillraceNet WebSocket controlled by lines of text.
///
/// usage: net-peer serve [CERTIFICATE KEY]
///        net-peer connect ADDRESS [ROOTS]
///
/// A server prints `port N`, echoes every message, and obeys the text messages `close CODE REASON` and `send COUNT`. A client reads
/// lines: `text WORDS`, `send COUNT` (bytes of the pattern), `close CODE REASON`, `cancel`. Both print `opened PROTOCOL`, and last
/// `closed CODE REASON` or `failed CODE KIND STATUS`; a client prints `text WORDS` and `binary COUNT SUM`.

import Foundation
import MillraceNet
import Synchronization

private let largest = 4 << 20

private func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

/// Bytes in which an omission, repetition or cut shows.
private func pattern(_ count: Int) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
    for index in 0..<count { buffer[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
    initialized = count
  }
}

/// Adler-32, RFC 1950 section 8.2: a checksum that depends on the order of the bytes.
private func sum(_ bytes: [UInt8]) -> UInt32 {
  bytes.withUnsafeBufferPointer { bytes in
    var low: UInt32 = 1
    var high: UInt32 = 0
    for byte in bytes {
      low = (low &+ UInt32(byte)) % 65_521
      high = (high &+ low) % 65_521
    }
    return high << 16 | low
  }
}

private func say(_ end: WebSocketEnd) {
  guard let problem = end.problem else {
    say("closed \(end.code) \(end.reason)")
    return
  }
  say("failed \(end.code) \(problem.kind.rawValue) \(problem.status ?? 0)")
}

/// Executes a command on a socket. Returns false for anything else.
private func carryOut(_ line: String, _ socket: WebSocket) -> Bool {
  let words = line.split(separator: " ", maxSplits: 2).map(String.init)
  switch words.first {
  case "close":
    let code = words.dropFirst().first.flatMap { Int($0) } ?? 1000
    socket.close(code: code, reason: words.dropFirst(2).first ?? "")
  case "send": _ = socket.send(pattern(words.dropFirst().first.flatMap { Int($0) } ?? 0), isText: false)
  case "cancel": socket.cancel()
  default: return false
  }
  return true
}

private func serve(_ identity: NetIdentity?) async throws {
  var limits = WebSocketLimits()
  limits.message = largest
  limits.backlog = largest
  let server = try await WebSocketServer.listen(port: 0, identity: identity, limits: limits) { client in
    let offered = (client["Sec-WebSocket-Protocol"] ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }
    if client.target == "/forbidden" { return .refuse(status: 403, "not you") }
    return .accept(protocol: offered.last) { socket in
      { event in
        switch event {
        case .opened(let subprotocol): say("opened \(subprotocol ?? "")")
        case .text(let bytes):
          if !carryOut(String(decoding: bytes, as: UTF8.self), socket) {
            _ = socket.send(bytes, isText: true)
          }
        case .binary(let bytes): _ = socket.send(bytes, isText: false)
        case .drained: break
        case .closed(let end): say(end)
        }
      }
    }
  }
  say("port \(server.port)")
  // Until the parent closes standard input.
  while readLine() != nil {}
}

private func connect(_ address: String, _ roots: String?) throws {
  var request = WebSocketRequest(try WebAddress(address))
  request.limits.message = largest
  request.limits.backlog = largest
  request.protocols = ["first", "second"]
  if let roots { request.trust = .file(roots) }
  let socket = WebSocket.open(request) { event in
    switch event {
    case .opened(let subprotocol): say("opened \(subprotocol ?? "")")
    case .text(let bytes): say("text \(String(decoding: bytes, as: UTF8.self))")
    case .binary(let bytes): say("binary \(bytes.count) \(sum(bytes))")
    case .drained: break
    case .closed(let end): say(end)
    }
  }
  while let line = readLine() {
    if line.hasPrefix("text ") {
      _ = socket.send(text: String(line.dropFirst(5)))
    } else if !carryOut(line, socket) {
      say("unknown command")
    }
  }
}

private let words = Array(CommandLine.arguments.dropFirst())
switch words.first {
case "serve": try await serve(words.count == 3 ? NetIdentity(certificate: words[1], key: words[2]) : nil)
case "connect" where words.count >= 2: try connect(words[1], words.count > 2 ? words[2] : nil)
default:
  say("usage: net-peer serve [CERTIFICATE KEY] | connect ADDRESS [ROOTS]")
  exit(2)
}
