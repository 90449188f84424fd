internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON

/// The packets of a connection itself, and what those of the cloud mean for it.
enum TuyaForms {
  // MARK: To the cloud

  /// A ping, with the time in milliseconds since 1970.
  static func ping(at now: UInt64) -> TuyaPacket {
    var attributes = TuyaAttributes()
    attributes.add(.clientTime, now)
    return TuyaPacket(.ping, attributes)
  }

  /// The end of the connection.
  static func close(_ status: TuyaStatus) -> TuyaPacket {
    var attributes = TuyaAttributes()
    attributes.add(.closeCode, UInt64(status.rawValue))
    return TuyaPacket(.connectionClose, attributes)
  }

  /// A request for more time.
  static func refresh(_ id: String) -> TuyaPacket {
    var attributes = TuyaAttributes()
    attributes.add(.connectionID, id)
    return TuyaPacket(.refreshRequest, attributes)
  }

  // MARK: Of the cloud

  /// What a packet means for the connection; nil: it is for a session, or not known.
  /// - Parameter now: milliseconds since 1970.
  static func input(_ packet: TuyaPacket, at now: UInt64) -> TuyaLink.Input? {
    let attributes = packet.attributes
    switch packet.type {
    case .authResponse:
      let status = status(attributes.integer(.status)) ?? .internalError
      return .answered(status, id: attributes.text(.connectionID) ?? "")
    case .refreshResponse:
      let status = status(attributes.integer(.status)) ?? .ok
      return .refreshed(status, in: TuyaConnection.time(until: attributes.integer(.expiry)))
    case .connectionClose: return .closed(status(attributes.integer(.closeCode)) ?? .connectionFailed)
    case .delayedDisconnect: return .delayed
    case .ping, .pong: return .received
    default: return nil
    }
  }

  /// A status from an attribute.
  static func status(_ number: UInt64?) -> TuyaStatus? {
    number.flatMap { UInt16(exactly: $0) }.map { TuyaStatus(rawValue: $0) }
  }

  /// The sessions that a packet lists (attribute 112): JSON, or texts with commas between. Nil: it lists none.
  static func sessions(_ packet: TuyaPacket) -> [String]? {
    guard let bytes = packet.attributes.bytes(.sessionIDs), !bytes.isEmpty else { return nil }
    if let json = try? JSONValue(parsing: bytes), let list = json.array {
      return list.compactMap(\.string)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    return text.split(separator: ",").map { String($0.drop { $0 == " " }) }
  }
}

extension TuyaBulk {
  /// The packet of a part.
  /// - Parameter number: of the part, from 0.
  func packet(flag: TuyaStreamFlag, _ bytes: [UInt8], number: UInt32) -> TuyaPacket {
    var attributes = TuyaAttributes()
    var flag = flag
    if case .video(_, let isFirst) = kind { flag = isFirst ? .start : .streaming }
    if flag.begins {
      switch kind {
      case .image(let parameters): parameters.add(to: &attributes, dialect)
      case .file(let parameters): parameters.add(to: &attributes, dialect)
      case .video(let parameters, _): parameters.add(to: &attributes, dialect)
      }
      if let userData { attributes.add(.userData, bytes: userData) }
    }
    let type: TuyaPacketType =
      switch kind {
      case .image: .image
      case .file: .file
      case .video: .video
      }
    var head = TuyaMediaHead(dataID, flag, milliseconds: time)
    if type == .file { head.counter = number }
    return TuyaPacket(type, attributes, .media(head, bytes))
  }
}
