internal import NIOCore
internal import NIOSSL
internal import Synchronization

/// Counters of a server, readable from any thread.
final class ServerCounters: Sendable {
  let halfOpen = Atomic<Int>(0)
  let connections = Atomic<Int>(0)
  let refused = Atomic<Int>(0)
}

/// Enforces the admission rules of one server: counts connections, refuses them, and reports refusals. On the event loop.
final class AdmissionControl {
  /// The shortest time between two reports: a flood of connections must not become a flood of events.
  private static let reportInterval = TimeAmount.seconds(1)

  let admission: ServerAdmission
  private let figures: ServerCounters
  private let loop: any EventLoop
  private let report: @Sendable (ServerAdmission.Refusals) -> Void
  /// The name the server listens on, in lower case.
  private let host: String
  private let certificate: NIOSSLCertificate?
  private var count: AdmissionCount
  private var unreported = 0
  private var total = 0
  private var latest: (refusal: ServerAdmission.Refusal, peer: String)?
  private var isReportPending = false

  init(
    _ admission: ServerAdmission, host: String, certificate: NIOSSLCertificate?, figures: ServerCounters,
    on loop: any EventLoop,
    report: @escaping @Sendable (ServerAdmission.Refusals) -> Void
  ) {
    self.admission = admission
    self.host = host.lowercased()
    self.certificate = certificate
    self.figures = figures
    self.loop = loop
    self.report = report
    count = AdmissionCount(admission)
  }

  // MARK: Connections

  /// A connection was accepted. Returns why it is refused, or nil.
  func arrive(from address: AdmissionCount.Address) -> ServerAdmission.Refusal? {
    defer { publish() }
    return count.arrive(from: address)
  }

  func open(from address: AdmissionCount.Address) {
    count.open(from: address)
    publish()
  }

  func close(from address: AdmissionCount.Address, wasOpen: Bool) {
    count.close(from: address, wasOpen: wasOpen)
    publish()
  }

  private func publish() {
    figures.halfOpen.store(count.halfOpen, ordering: .relaxed)
    figures.connections.store(count.connections, ordering: .relaxed)
  }

  /// Why this request is refused, or nil when the rules admit it.
  func refusal(of request: ServerAdmission.Request) -> ServerAdmission.Refusal? {
    admission.refusal(of: request) { name in
      name == host || certificate.map { ServerName(name).isHeld(by: $0) } ?? false
    }
  }

  /// Why no further connection may open, or nil.
  var refusalToOpen: ServerAdmission.Refusal? { count.refusal }

  // MARK: Reports

  func note(_ refusal: ServerAdmission.Refusal, from peer: String) {
    total += 1
    unreported += 1
    latest = (refusal, peer)
    figures.refused.store(total, ordering: .relaxed)
    if !isReportPending { reportNow() }
  }

  private func reportNow() {
    guard unreported > 0, let latest else { return }
    report(
      ServerAdmission.Refusals(count: unreported, total: total, latest: latest.refusal, peer: latest.peer))
    unreported = 0
    isReportPending = true
    let bound = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(in: Self.reportInterval) {
      bound.value.isReportPending = false
      bound.value.reportNow()
    }
  }
}
