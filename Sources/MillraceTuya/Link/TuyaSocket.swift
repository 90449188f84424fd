internal import MillraceCrypto
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

/// The byte stream of a connection with its frames: writes packets, and reports those that come. On the connection's loop.
final class TuyaSocket: @unchecked Sendable {
  enum Event: Sendable {
    /// Bytes may be sent.
    case opened
    /// Bytes have arrived.
    case received
    case packet(TuyaPacket)
    /// What arrived is no packet; nothing follows.
    case invalid(TuyaWireProblem)
    /// The last event.
    case ended(DialogError)
  }

  private let target: TuyaTarget
  private let access: TuyaAccess
  private let client: String
  private var writer: TuyaFrameWriter
  private var reader: TuyaFrameReader
  private let randoms: [String]
  private var buffer: [UInt8] = []
  private var stream: ByteStream?
  private var isOpen = false
  private var isOver = false
  private let report: (Event) -> Void

  /// Opens a byte stream.
  /// - Throws: 39002: something is missing to connect with, or the token would go over the network in plain text.
  init(
    _ target: TuyaTarget, _ access: TuyaAccess, on loop: NetLoop, _ report: @escaping (Event) -> Void
  ) throws(DialogError) {
    func missing(_ what: String, _ parameter: String) -> DialogError {
      .tuya(
        .invalidParameter,
        "there is no \(what), in the parameters nor from the token provider; set \"\(parameter)\", or let the provider give it",
        reaction: .refuse)
    }
    guard let address = access.address else { throw missing("address", "url") }
    // Of a parameter this is known before; a token server may name any address.
    guard address.isProtected(target.dialect) else {
      throw .tuya(
        .invalidParameter,
        "the token would go to \(address.authority) in plain text; the token server must give an address with TLS (\"domains\", \"ecc_tls_port\"), or, for an older installation, set \"dialect\" to v1",
        reaction: .refuse)
    }
    guard let client = access.client, !client.isEmpty else { throw missing("client id", "client") }
    guard let key = access.localKey else { throw missing("local key", "localKey") }
    self.target = target
    self.access = access
    self.client = client
    self.report = report
    randoms = [Self.random(), Self.random()]
    let (first, second) = (Array(randoms[0].utf8), Array(randoms[1].utf8))
    let keys =
      target.dialect == .v1
      ? TuyaKeys(localKey: key, cryptRandom: first, signRandom: second)
      : TuyaKeys(localKey: key, random: first)
    var framing = TuyaFraming(target.dialect, keys: keys)
    framing.security = target.security
    framing.signLevel = target.signLevel
    framing.largestSent = target.maxFragment
    framing.limit = target.maxFragment
    framing.mostPacketBytes = target.maxPacket
    writer = TuyaFrameWriter(framing, .up)
    reader = TuyaFrameReader(framing, .down)
    var request = ByteStreamRequest(address)
    request.trust = target.trust
    request.proxy = target.proxy
    request.loop = loop
    request.limits.open = target.open
    // A packet that is refused would leave a gap in the sequence. What waits is bounded before.
    request.limits.backlog = 2 * TuyaOutbox.mostWaiting
    request.limits.unsent = target.unsent
    stream = ByteStream.open(request) { [weak self] in self?.take($0) }
  }

  /// 32 characters, since v1 writes them as a text.
  private static func random() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    var source = SystemRandomNumberGenerator()
    return String(
      decoding: (0..<TuyaKeys.randomBytes).map { _ in
        letters[Int.random(in: 0..<letters.count, using: &source)]
      },
      as: UTF8.self)
  }

  // MARK: Sending

  /// Bytes that the network has not taken.
  var backlog: Int { stream?.backlog ?? 0 }
  /// Bytes that were written since the last `flush`.
  var written: Int { buffer.count }

  /// Writes a packet.
  func write(_ packet: TuyaPacket) throws(TuyaWireProblem) { try writer.append(packet, to: &buffer) }

  /// Hands what was written to the network.
  func flush() {
    guard !buffer.isEmpty else { return }
    let isSent = stream?.send(buffer) ?? true
    buffer.removeAll(keepingCapacity: true)
    guard !isSent else { return }
    stream?.cancel()
    end(.tuya(.sendFailed, "the network accepts no more data", category: .network, reaction: .reconnect))
  }

  /// Writes the hello, and the login of the dialect v1.
  func hello() throws(TuyaWireProblem) {
    var attributes = TuyaAttributes()
    attributes.add(.clientType, UInt64(target.identity.rawValue))
    attributes.add(.clientID, client)
    if target.dialect == .v1 {
      if let derivation = access.derivation {
        attributes.add(.derivedAlgorithm, derivation.algorithm)
        attributes.add(.derivedIV, derivation.vector)
      }
      attributes.add(.cryptRandom, randoms[0])
      attributes.add(.signRandom, randoms[1])
    } else {
      attributes.add(.securitySuite, bytes: [target.signLevel.rawValue] + Array(randoms[0].utf8))
    }
    attributes.add(.maxFragment, UInt64(target.maxFragment))
    attributes.add(.pingInterval, UInt64(target.ping))
    try write(TuyaPacket(.clientHello, attributes))
    guard target.dialect == .v1 else { return }
    var login = TuyaAttributes()
    login.add(.userName, access.user ?? "")
    login.add(.password, access.password?.text ?? "")
    try write(TuyaPacket(.authRequest, login))
  }

  // MARK: Receiving

  private func take(_ event: ByteStreamEvent) {
    guard !isOver else { return }
    switch event {
    case .opened:
      isOpen = true
      report(.opened)
    case .bytes(let bytes): read(bytes)
    case .drained: break
    case .finished:
      stream?.close()
      end(
        .tuya(
          .common, "the cloud ended the connection without a word", category: .network, reaction: .reconnect))
    case .closed(let end): self.end(.tuya(end, wasOpen: isOpen))
    }
  }

  private func read(_ bytes: [UInt8]) {
    report(.received)
    reader.append(bytes)
    while !isOver {
      do throws(TuyaWireProblem) {
        guard let packet = try reader.next() else { return }
        report(.packet(packet))
      } catch {
        report(.invalid(error))
        isOver = true
      }
    }
  }

  private func end(_ error: DialogError) {
    isOver = true
    report(.ended(error))
  }

  func pause() { stream?.pause() }
  func resume() { stream?.resume() }

  /// Closes behind what was written. Nothing is reported any more. The stream lives on until it is closed.
  func close() {
    isOver = true
    stream?.close()
  }

  /// Closes at once.
  func cancel() {
    isOver = true
    stream?.cancel()
  }
}

extension DialogError {
  /// The end of a byte stream under the vendor's code: 39010 once it was open, 39004 before. Category, reaction and text are those of any
  /// byte stream.
  static func tuya(_ end: ByteStreamEnd, wasOpen: Bool) -> DialogError {
    var error = DialogError(end, vendor: "tuya")
    // The answer of a proxy.
    error.detail = error.code.map(String.init) ?? error.detail
    error.code = (wasOpen ? TuyaErrorCode.sendFailed : .notConnected).rawValue
    if end.problem?.kind == .tls, error.text.contains("no authority") {
      error.text += "; set \"roots\" to a file with that authority's certificate (PEM), or check the address"
    }
    return error
  }
}
