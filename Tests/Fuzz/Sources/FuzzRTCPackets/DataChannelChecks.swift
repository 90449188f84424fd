import MillraceRTCWire

/// Reads a message that opens a data channel, and writes it again.
func checkDataChannel(_ bytes: [UInt8]) {
  let message: DataChannelMessage
  do throws(DataChannelProblem) { message = try DataChannelMessage(parsing: bytes.span) } catch {
    return checkText(error.description)
  }
  if message.byteCount != bytes.count { fatalError("\(message) has \(bytes.count) bytes") }
  var room = [UInt8](repeating: 0xEE, count: bytes.count)
  var target = room.mutableSpan
  do throws(DataChannelProblem) {
    let count = try message.write(into: &target)
    if try DataChannelMessage(parsing: target.span.extracting(0..<count)) != message {
      fatalError("\(message) reads back differently")
    }
  } catch {
    fatalError("a message that was read cannot be written: \(error)")
  }
  do throws(DataChannelProblem) {
    let short = try DataChannelMessage(parsing: bytes.span, maximumTextBytes: 8)
    if case .open(let open) = short, max(open.label.utf8.count, open.subprotocol.utf8.count) > 8 {
      fatalError("a text beyond the limit")
    }
  } catch { checkText(error.description) }
}
