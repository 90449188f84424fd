internal import Glibc
internal import MillraceCore
internal import MillraceRTC

/// The threads of all calls of this process: made when first needed, and never ended.
enum RTCLoops {
  /// A call with sound takes about 2 % of a core, so that two threads serve more calls than a machine of two cores can encode for; on a
  /// machine with one core a second thread would bring nothing.
  private static let most = 2

  private struct Made {
    var loops: [RTCLoop] = []
    var next = 0
  }

  private static let made = Locked(Made())

  /// The loop for the next call, in turn. Any thread; starts a thread the first times.
  /// - Throws: when the system has no thread for it.
  static func next() throws(RTCProblem) -> RTCLoop {
    let count = min(most, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    return try made.withLock { (made: inout Made) throws(RTCProblem) -> RTCLoop in
      if made.loops.count < count { made.loops.append(try RTCLoop(name: "rtc \(made.loops.count)")) }
      made.next = (made.next + 1) % made.loops.count
      return made.loops[made.next]
    }
  }
}
