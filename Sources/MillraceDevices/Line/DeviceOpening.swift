internal import MillraceCore

/// A device that is being opened on a thread of its own while a node runs, because opening blocks for up to three seconds.
///
/// A device that was opened and not taken is closed with this object.
final class DeviceOpening<Device>: Sendable {
  private enum State {
    case opening
    case open(Device)
    case failed(NodeProblem)
  }

  /// The name as it was set.
  let name: String
  private let state = Locked(State.opening)

  /// Begins to open a device. Any thread; does not block.
  ///
  /// - Parameters:
  ///   - waker: called when the device is open, and when it could not be opened.
  ///   - open: opens it, on the new thread.
  init(_ name: String, waker: Waker, _ open: @escaping @Sendable () throws(NodeProblem) -> Device) {
    self.name = name
    let refusal = DetachedThread.start("millrace-open") { [self] in
      let result: State
      do throws(NodeProblem) { result = .open(try open()) } catch { result = .failed(error) }
      state.withLock { $0 = result }
      waker.wake()
    }
    guard refusal != 0 else { return }
    let problem = NodeProblem(
      "the system cannot create another thread", cure: "raise the limit of processes (ulimit -u)")
    state.withLock { $0 = .failed(problem) }
    waker.wake()
  }

  /// The device, once it is open; throws if it could not be opened.
  var device: Device? {
    get throws(NodeProblem) {
      switch state.withLock({ $0 }) {
      case .opening: return nil
      case .open(let device): return device
      case .failed(let problem): throw problem
      }
    }
  }
}
