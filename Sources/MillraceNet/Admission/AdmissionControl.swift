internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOSSL
internal import Synchronization

/// Counters of a server, readable from any thread.
final class ServerCounters: Sendable {
  let halfOpen = Atomic<Int>(0)
  let connections = Atomic<Int>(0)
  let refused = Atomic<Int>(0)
}

/// Enforces the admission rules of one server: counts connections, refuses them, and reports refusals. Any thread: connections of one
/// server may be on several event loops.
final class AdmissionControl: Sendable {
  /// The shortest time between two reports: a flood of connections must not become a flood of events.
  private static let reportInterval = TimeAmount.seconds(1)

  private struct State {
    var count: AdmissionCount
    var unreported = 0
    var total = 0
    var latest: (refusal: ServerAdmission.Refusal, peer: String)?
    var isReportPending = false
  }

  let admission: ServerAdmission
  private let figures: ServerCounters
  private let loop: any EventLoop
  private let report: @Sendable (ServerAdmission.Refusals) -> Void
  /// The name the server listens on, in lower case.
  private let host: String
  private let certificate: NIOSSLCertificate?
  private let state: NIOLockedValueBox<State>

  /// - Parameters:
  ///   - loop: where `report` is called.
  ///   - report: receives refusals.
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
    state = NIOLockedValueBox(State(count: AdmissionCount(admission)))
  }

  // MARK: Connections

  /// A connection was accepted. Returns why it is refused, or nil.
  func arrive(from address: AdmissionCount.Address) -> ServerAdmission.Refusal? {
    change { $0.arrive(from: address) }
  }

  /// A half-open connection opens. Returns why it may not, or nil.
  func open(from address: AdmissionCount.Address) -> ServerAdmission.Refusal? {
    change { count in
      if let refusal = count.refusal { return refusal }
      count.open(from: address)
      return nil
    }
  }

  /// A request's body is to come. Returns why the request is refused, or nil.
  func awaitBody(from address: AdmissionCount.Address) -> ServerAdmission.Refusal? {
    change { $0.awaitBody(from: address) }
  }

  func endBody(from address: AdmissionCount.Address) { change { $0.endBody(from: address) } }

  func close(from address: AdmissionCount.Address, wasOpen: Bool) {
    change { $0.close(from: address, wasOpen: wasOpen) }
  }

  private func change<Answer>(_ body: (inout AdmissionCount) -> Answer) -> Answer {
    state.withLockedValue { state in
      let answer = body(&state.count)
      figures.halfOpen.store(state.count.halfOpen, ordering: .relaxed)
      figures.connections.store(state.count.connections, ordering: .relaxed)
      return answer
    }
  }

  /// Why this request is refused, or nil when the rules admit it.
  func refusal(of request: ServerAdmission.Request) -> ServerAdmission.Refusal? {
    admission.refusal(of: request) { name in
      name == host || certificate.map { ServerName(name).isHeld(by: $0) } ?? false
    }
  }

  /// The certificate for a connection; nil: no TLS. Looked up for each one, so that a renewed certificate takes effect at once and a broken
  /// one is reported.
  func context(of identity: NetIdentity?, for channel: any Channel) throws -> NIOSSLContext? {
    do { return try identity?.context().context } catch {
      let refusal = ServerAdmission.Refusal(kind: .certificate, status: nil, text: "\(error)")
      note(refusal, from: AdmittedPeer.name(of: channel))
      throw refusal
    }
  }

  // MARK: Reports

  func note(_ refusal: ServerAdmission.Refusal, from peer: String) {
    let mayReport = state.withLockedValue { state in
      state.total += 1
      state.unreported += 1
      state.latest = (refusal, peer)
      figures.refused.store(state.total, ordering: .relaxed)
      return !state.isReportPending
    }
    guard mayReport else { return }
    if loop.inEventLoop { reportNow() } else { loop.execute { [self] in reportNow() } }
  }

  /// On the loop.
  private func reportNow() {
    let refusals = state.withLockedValue { state -> ServerAdmission.Refusals? in
      guard !state.isReportPending, state.unreported > 0, let latest = state.latest else { return nil }
      defer { state.unreported = 0 }
      state.isReportPending = true
      return ServerAdmission.Refusals(
        count: state.unreported, total: state.total, latest: latest.refusal, peer: latest.peer)
    }
    guard let refusals else { return }
    report(refusals)
    loop.scheduleTask(in: Self.reportInterval) { [self] in
      state.withLockedValue { $0.isReportPending = false }
      reportNow()
    }
  }
}
