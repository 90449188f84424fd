@testable import MillraceRTCWire

/// Reads a description, and does with it what a session does.
func checkDescription(_ bytes: [UInt8]) {
  let read: SessionDescription
  do throws(SDPProblem) { read = try SessionDescription(parsing: bytes) } catch {
    return check(error, bytes)
  }
  for note in read.notes { checkText(note.text) }
  checkNegotiation(read)
  guard isExact(read, bytes) else { return }
  let again = reread(read)
  if again.text != read.text { fatalError("written again it is another: \(again.text)") }
  if normal(again) != normal(read) { fatalError("it reads back differently: \(read.text)") }
  checkRestart(read)
}

/// Reads a fragment of trickle ICE.
func checkFragment(_ bytes: [UInt8]) {
  var read: TrickleFragment
  do throws(SDPProblem) { read = try TrickleFragment(parsing: bytes) } catch {
    return check(error, bytes)
  }
  for section in read.sections { _ = read.credentials(of: section) }
  let text = read.text
  guard isText(bytes), read.sections.allSatisfy({ areShort($0.candidates) }) else { return }
  do throws(SDPProblem) {
    var again = try TrickleFragment(parsing: text)
    (again.notes, read.notes) = ([], [])
    if again != read { fatalError("it reads back differently: \(text)") }
  } catch {
    fatalError("a fragment that was written is refused: \(error)")
  }
}

/// Reads a candidate as it stands in a message of signalling.
func checkCandidate(_ bytes: [UInt8]) {
  let read: ICECandidate
  do throws(SDPProblem) { read = try ICECandidate(parsing: String(decoding: bytes, as: UTF8.self)) } catch {
    return checkText(error.description)
  }
  _ = (read.isLocalName, read.isIPv6, read.isUDP, read.userFragment)
  guard areShort([read]) else { return }
  do throws(SDPProblem) {
    if try ICECandidate(value: read.value[...]) != read { fatalError("it reads back differently: \(read)") }
  } catch {
    fatalError("a candidate that was written is refused: \(error)")
  }
}

// MARK: - What reads back as it was

private func check(_ problem: SDPProblem, _ bytes: [UInt8]) {
  checkText(problem.text)
  let lines = bytes.count(where: { $0 == UInt8(ascii: "\n") }) + 1
  if !(0...lines).contains(problem.line) { fatalError("line \(problem.line) of \(lines)") }
}

private func reread(_ description: SessionDescription) -> SessionDescription {
  do throws(SDPProblem) { return try SessionDescription(parsing: description.text) } catch {
    fatalError("a description that was written is refused: \(error)")
  }
}

/// True where nothing becomes longer when it is written, which bounds could refuse.
private func isExact(_ description: SessionDescription, _ bytes: [UInt8]) -> Bool {
  isText(bytes) && description.media.allSatisfy { areShort($0.candidates) }
}

/// What is no UTF-8 is replaced by more bytes.
private func isText(_ bytes: [UInt8]) -> Bool {
  String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes)
}

/// Few letters of a transport become longer in lower case.
private func areShort(_ candidates: [ICECandidate]) -> Bool {
  candidates.allSatisfy { $0.value.utf8.count <= ICECandidate.mostBytes }
}

/// The description without what the order of its lines decides.
private func normal(_ description: SessionDescription) -> SessionDescription {
  var result = description
  (result.notes, result.droppedCandidates) = ([], 0)
  // These are written in front of the others.
  let early = Set("uep".unicodeScalars)
  result.lines = description.lines.filter { early.contains($0.type) }
  result.lines += description.lines.filter { !early.contains($0.type) }
  for index in result.media.indices {
    let medium = result.media[index]
    var ordered = medium.feedback.filter { $0.payloadType == nil }
    for map in medium.rtpMaps { ordered += medium.feedback.filter { $0.payloadType == map.payloadType } }
    let mapped = Set(medium.rtpMaps.map { $0.payloadType })
    ordered += medium.feedback.filter { item in item.payloadType.map { !mapped.contains($0) } ?? false }
    result.media[index].feedback = ordered
    // Of both forms of the port the older one is written.
    if medium.attributes.contains(where: { $0.name == "sctpmap" }) { result.media[index].sctpPort = nil }
  }
  return result
}

/// An ICE restart is noticed, and only a restart is.
private func checkRestart(_ description: SessionDescription) {
  if description.restartsICE(after: description) { fatalError("a restart without new credentials") }
  let credentials = ICECredentials(fragment: "fresh", password: "fresh-password-of-the-fuzzer")
  let restarted = description.restartingICE(credentials, hasAllCandidates: true)
  let isUsed = description.media.contains { description.transport(of: $0).credentials == credentials }
  let isThere = description.media.contains { !$0.isRejected }
  if !isUsed && restarted.restartsICE(after: description) != isThere {
    fatalError("the restart is not noticed: \(restarted.text)")
  }
  _ = reread(restarted)
  let fragment = TrickleFragment(
    of: description, candidates: description.media.first?.candidates ?? [], hasEndOfCandidates: true)
  do throws(SDPProblem) { _ = try TrickleFragment(parsing: fragment.text) } catch {
    fatalError("a fragment of a description is refused: \(error)")
  }
}
