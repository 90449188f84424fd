internal import Synchronization

/// A node whose parameter `device` can be set while its graph runs.
///
/// Opening a device blocks for up to seconds, so it is done on a thread of its own while the present device continues. The node moves when the
/// other one is ready, and one that cannot be opened changes nothing. Devices are opened one at a time, because some can be open only once: of
/// several that are set meanwhile, the last counts.
///
/// On the voice lane a change is the exception to the rules of `Node`, twice for each device that somebody sets. Setting it copies its name and
/// creates a thread. Taking it, or giving it up, posts an event with its name, and creates the thread that closes the device that is not used any
/// more. Both cost about as much as creating a thread. In between, a call reads one atomic, and once the device is open also asks whether it runs.
package protocol DeviceChanging: ~Copyable {
  /// An open device. Releasing it closes it.
  associatedtype Device

  /// Indices of the events `deviceChanged` and `error`.
  static var changeEvents: (changed: Int, error: Int) { get }

  /// What is being opened.
  var change: DeviceChange<Device> { get set }

  /// Begins to open a device.
  /// - Throws: why there can be no such device.
  borrowing func opening(of name: String) throws(NodeProblem) -> DeviceOpening<Device>

  /// Whether the device can be used by now. A silent one wakes the node when it runs.
  /// - Throws: why it never will.
  mutating func readiness(of device: Device, _ ports: inout Ports) throws(NodeProblem) -> DeviceReadiness

  /// Uses the device in place of the present one.
  /// - Returns: true when it has been lost already.
  mutating func move(to device: Device, _ ports: inout Ports) -> Bool

  /// Reports that the device to which the node has just moved is lost.
  mutating func postLost(_ ports: inout Ports)
}

/// Whether an open device can take the place of the present one.
package enum DeviceReadiness: Sendable {
  /// It neither delivers nor plays anything yet.
  case silent
  /// It runs, but the node cannot move yet; it is called again when it can.
  case running
  case ready
}

/// The name of a node's device, and what is being opened to take its place.
package struct DeviceChange<Device> {
  /// The name of the present device, as it was set.
  fileprivate var device: String
  fileprivate var opening: DeviceOpening<Device>?
  /// The device that was set last while another one was being opened.
  fileprivate var requested: String?
  /// Until when the device that is open has to run.
  fileprivate var limit: Nanoseconds?
  /// When a device that does not open, or is open and silent, is given up; nil while there is none. A node with nothing else to wait for asks to
  /// be called then.
  package fileprivate(set) var deadline: Nanoseconds?

  /// How long a device may take to open. Audio devices and cameras limit themselves to 7 s, with those that are closing; a screen on another
  /// machine waits as long as TCP does.
  fileprivate static var longestOpening: Nanoseconds { .milliseconds(10_000) }
  /// How long an open device may be silent. Sound cards start within a second, cameras within two or three.
  fileprivate static var longestSilence: Nanoseconds { .milliseconds(5_000) }

  /// The device that was set before its node was recreated, and why it cannot be used; nil once that was reported.
  fileprivate var refused: (name: String, problem: NodeProblem)?

  private init(from device: String) { self.device = device }

  /// Opens the device that a node begins with.
  ///
  /// A recreated node gets the device that was set last. If that one cannot be used, the node begins with the one its graph was started with, and
  /// the event `error` says why: the node ran without it before, too. Control side; blocks.
  ///
  /// - Parameters:
  ///   - device: the name in the node's parameters.
  ///   - initial: the name with which the graph was started.
  ///   - open: opens a device by its name.
  /// - Throws: why the graph's own device cannot be used.
  package static func begin<Opened>(
    with device: String, insteadOf initial: String, _ open: (String) throws(NodeProblem) -> Opened
  ) throws(NodeProblem) -> (Opened, DeviceChange) {
    guard device != initial else { return (try open(device), DeviceChange(from: device)) }
    do throws(NodeProblem) {
      return (try open(device), DeviceChange(from: device))
    } catch {
      var change = DeviceChange(from: initial)
      change.refused = (device, error)
      return (try open(initial), change)
    }
  }

  /// True while there is something for `changeDevice` to do: a device is being opened or becomes ready, or a refusal is to be reported.
  package var isPending: Bool { opening != nil || refused != nil }
}

extension DeviceChanging where Self: ~Copyable {
  /// Sets another device. On the node's worker; allocates.
  package mutating func setDevice(_ name: String, _ ports: inout Ports) {
    // Set again while it is being opened, a device is not opened twice.
    change.requested = name == change.opening?.name ? nil : name
    openNext(&ports)
  }

  /// Moves to the device that was set, once it is ready. Call it in each call of `process` while `change` is pending.
  package mutating func changeDevice(_ ports: inout Ports) {
    if let (name, problem) = change.refused.take() { postError(problem, name, &ports) }
    guard let opening = change.opening else { return }
    do throws(NodeProblem) {
      guard let device = try opening.device else {
        // Its thread closes it, should it open after all.
        return giveUpIfLate(opening, &ports)
      }
      // One that was set since then takes its place; this one is closed unused.
      if change.requested == nil {
        guard try isReady(device, &ports) else { return }
        use(device, opening.name, &ports)
      }
    } catch {
      postError(error, opening.name, &ports)
    }
    // An unused device begins to close here, and not while the next one is being opened.
    opening.release()
    endOpening(&ports)
  }

  private mutating func use(_ device: Device, _ name: String, _ ports: inout Ports) {
    let isLost = move(to: device, &ports)
    change.device = name
    let bytes = Array(name.utf8)
    ports.post(Self.changeEvents.changed) { $0.field("device", utf8: bytes.span) }
    if isLost { postLost(&ports) }
  }

  private mutating func giveUpIfLate(_ opening: DeviceOpening<Device>, _ ports: inout Ports) {
    guard let limit = change.deadline, ports.now >= limit else { return }
    let problem = NodeProblem(
      "the device did not open within \(DeviceChange<Device>.longestOpening / 1_000_000_000) s",
      parameter: "device",
      cure: "check that it is connected and that its server answers, or set another device")
    postError(problem, opening.name, &ports)
    endOpening(&ports)
  }

  private mutating func endOpening(_ ports: inout Ports) {
    change.opening = nil
    change.limit = nil
    change.deadline = nil
    openNext(&ports)
  }

  private mutating func isReady(_ device: Device, _ ports: inout Ports) throws(NodeProblem) -> Bool {
    let limit = change.limit ?? ports.now &+ DeviceChange<Device>.longestSilence
    change.limit = limit
    let state = try readiness(of: device, &ports)
    change.deadline = state == .silent ? limit : nil
    guard state == .silent, ports.now >= limit else { return state == .ready }
    throw NodeProblem(
      "the device was opened but does not run", parameter: "device",
      cure: "check that it is connected and that no other program holds it, or set another device")
  }

  private mutating func openNext(_ ports: inout Ports) {
    guard change.opening == nil, let name = change.requested else { return }
    change.requested = nil
    guard name != change.device else { return }
    do throws(NodeProblem) {
      change.opening = try opening(of: name)
      change.deadline = ports.now &+ DeviceChange<Device>.longestOpening
    } catch {
      postError(error, name, &ports)
    }
  }

  private func postError(_ problem: NodeProblem, _ name: String, _ ports: inout Ports) {
    ports.post(problem, as: Self.changeEvents.error, naming: "device", name)
  }
}

/// A device that is being opened on a thread of its own.
///
/// A device that was opened and not taken is closed with this object. The thread keeps no reference to the device once the node sees it, so the
/// last one is released by the node.
package final class DeviceOpening<Device>: @unchecked Sendable {
  private enum State {
    case opening
    case open(Device)
    case failed(NodeProblem)
    case released
  }

  /// The name as it was set.
  package let name: String
  /// Belongs to the thread, and to the node from `isDone` on.
  private var state = State.opening
  private let isDone = Atomic<Bool>(false)

  /// Begins to open a device. Any thread; does not block.
  ///
  /// - Parameters:
  ///   - waker: called when the device is open, and when it could not be opened.
  ///   - open: opens it, on the new thread.
  package init(
    _ name: String, waker: Waker, _ open: @escaping @Sendable () throws(NodeProblem) -> Device
  ) {
    self.name = name
    let refusal = DetachedThread.start("millrace-open") { [self] in
      run(open)
      isDone.store(true, ordering: .releasing)
      waker.wake()
    }
    guard refusal != 0 else { return }
    state = .failed(
      NodeProblem(
        "the system cannot create another thread", cure: "raise the limit of processes (ulimit -u)"))
    isDone.store(true, ordering: .releasing)
    waker.wake()
  }

  private func run(_ open: () throws(NodeProblem) -> Device) {
    do throws(NodeProblem) { state = .open(try open()) } catch { state = .failed(error) }
  }

  /// The device, once it is open; throws if it could not be opened. On the node's worker.
  fileprivate var device: Device? {
    get throws(NodeProblem) {
      guard isDone.load(ordering: .acquiring) else { return nil }
      switch state {
      case .opening, .released: return nil
      case .open(let device): return device
      case .failed(let problem): throw problem
      }
    }
  }

  /// Gives up the device, and closes it unless the node uses it. On the node's worker, after `isDone`.
  fileprivate func release() { state = .released }
}
