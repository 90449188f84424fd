internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// The service's wire: signed requests over HTTP, and a signed WebSocket as the command channel.
struct IVHEndpoint: ServiceEndpoint {
  static let vendor = "ivh"

  private let generation: IVHGeneration
  private let channel: WebSocketRequest
  private var account: IVHAccount
  /// Where requests go, without a path.
  private let origin: HTTPClient.Request
  private let secrets: Secrets
  private let voice: IVHVoice

  /// - Parameters:
  ///   - generation: which of the two interfaces is spoken.
  ///   - origin: a request to the service's root, with trust, proxy and times.
  ///   - channel: the same for the channel.
  ///   - account: signs requests.
  ///   - secrets: learns what the service hands out.
  init(
    _ generation: IVHGeneration, origin: HTTPClient.Request, channel: WebSocketRequest, account: IVHAccount,
    secrets: Secrets
  ) {
    self.generation = generation
    self.origin = origin
    self.channel = channel
    self.account = account
    self.secrets = secrets
    voice = IVHVoice(generation)
  }

  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<IVHMessage>) -> Void
  ) -> ChannelWire<IVHMessage> {
    let voice = voice
    voice.session = nil
    return ChannelWire(on: loop, voice: { voice.message(for: $0) }, receive)
  }

  func boundary(of request: IVHRequest) -> VoiceBoundary? {
    switch request {
    case .beginVoice: .begin
    case .endVoice(let isCut): isCut ? .cut : .end
    default: nil
    }
  }

  mutating func use(_ credential: String) {
    secrets.add([credential])
    account = IVHAccount(appKey: account.appKey, token: credential)
  }

  func closingMessage(of session: IVHSession) -> IVHRequest? { session.closingRequest }

  mutating func send(
    _ request: IVHRequest, from session: IVHSession, over wire: ChannelWire<IVHMessage>
  ) -> Bool {
    switch request {
    case .call(let call, let number): send(call, number, over: wire)
    case .openChannel(let id): open(id, over: wire)
    case .closeChannel:
      voice.session = nil
      wire.closeChannel()
    case .command(let command):
      guard let id = session.session else { return true }
      return wire.send(command.frame(session: id, generation).bytes)
    case .beginVoice: voice.reset()
    case .endVoice(let isCut):
      let message = voice.end(isCut: isCut)
      return message.isEmpty || wire.send(message)
    }
    return true
  }

  // MARK: Requests

  private func send(_ call: IVHCall, _ number: Int, over wire: ChannelWire<IVHMessage>) {
    let request: HTTPClient.Request
    do throws(NetError) { request = try self.request(for: call) } catch {
      return wire.report(.message(.failed(DialogError(error, vendor: Self.vendor), to: number)))
    }
    wire.call(request) { [self] result in
      let message = Self.message(
        for: result, of: generation.name(of: call.operation), to: number, at: UnixTime.seconds)
      if wire.isClosed, case .answer(let answer, _) = message { abandon(call, answer, over: wire) }
      return .message(message)
    }
  }

  private func request(for call: IVHCall) throws(NetError) -> HTTPClient.Request {
    var request = origin
    let target = generation.path(of: call.operation) + "?" + account.query(at: UnixTime.seconds)
    request.address = try origin.address.resolving(target)
    request.body = .bytes(call.body(generation, id: call.id ?? IVHID.make()).bytes)
    return request
  }

  /// Closes a session that was created after its node had ended: the service would bill it until it closes idle sessions, ten minutes later.
  private func abandon(_ call: IVHCall, _ answer: IVHAnswer, over wire: ChannelWire<IVHMessage>) {
    guard case .create = call.operation, let id = answer.session else { return }
    send(.close(id), 0, over: wire)
  }

  /// What the response to a request means, whatever its status: refusals come with 200, too.
  static func message(
    for result: Result<HTTPClient.Response, NetError>, of operation: String, to number: Int, at time: Int
  ) -> IVHMessage {
    let response: HTTPClient.Response
    switch result {
    case .success(let success): response = success
    case .failure(let problem): return .failed(DialogError(problem, vendor: vendor), to: number)
    }
    let skew = IVHClockSkew(response["Date"], at: time)
    do throws(JSONFormProblem) {
      switch try IVHAnswer.parse(response.body) {
      case .success(let answer) where response.status < 400: return .answer(answer, to: number)
      case .success: break
      case .failure(let fault): return .refused(explain(fault, of: operation, skew), to: number)
      }
    } catch  where response.status < 400 {
      return .failed(
        DialogError(
          vendor: vendor, category: .network, reaction: .reconnect, text: "invalid answer: \(error)"),
        to: number)
    } catch {}
    let problem = NetError(
      .refused, status: response.status,
      "\(response.address.authority) answered with status \(response.status)\(skew.text)")
    return .failed(DialogError(problem, vendor: vendor, cure: Self.cure), to: number)
  }

  /// Adds to a refusal what was refused, and the cure where it is the account's.
  private static func explain(_ fault: IVHFault, of operation: String, _ skew: IVHClockSkew) -> IVHFault {
    let cure =
      switch fault.code {
      case _ where !skew.text.isEmpty: skew.text
      case IVHFault.notAuthorised: Self.cure
      case IVHFault.tooManySessions: "; end another session: \"listSession\" lists them"
      default: ""
      }
    return fault.with("\(operation): ", cure)
  }

  private static let cure =
    "; check \"key\" and \"token\", which the example graphs take from IVH_APPKEY and IVH_ACCESSTOKEN"

  // MARK: The channel

  private func open(_ id: String, over wire: ChannelWire<IVHMessage>) {
    var request = channel
    let target = generation.channelPath + "?" + account.query(at: UnixTime.seconds, session: id)
    do throws(NetError) { request.address = try channel.address.resolving(target) } catch {
      return wire.report(.message(.channelLost(DialogError(error, vendor: Self.vendor))))
    }
    voice.session = id
    voice.reset()
    let generation = generation
    wire.openChannel(request) { event in
      switch event {
      case .opened: return .message(.channelOpened)
      case .text(let bytes):
        do throws(JSONFormProblem) { return .message(.push(try IVHPush(parsing: bytes, generation))) } catch {
          return .invalidMessage(error.description)
        }
      case .closed(let end):
        var error = DialogError(end, vendor: Self.vendor, cure: Self.cure)
        // Neither a refusal nor a close code says whether the session still exists, so its status is queried.
        error.reaction = .reconnect
        return .message(.channelLost(error))
      }
    }
  }
}

/// How far this machine's clock is from the service's: beyond 300 s every signature is refused.
struct IVHClockSkew {
  /// Seconds by which this clock is ahead; nil: unknown, or within what the service accepts.
  private let seconds: Int?

  /// - Parameters:
  ///   - date: the header `Date` of a response.
  ///   - time: the time here, in seconds since 1970.
  init(_ date: String?, at time: Int) {
    let ahead = date.flatMap(HTTPDate.seconds(of:)).map { time - $0 }
    seconds = ahead.flatMap { abs($0) > IVHAccount.clockTolerance ? $0 : nil }
  }

  /// What is wrong with the clock, as the end of a sentence; empty: nothing.
  var text: String {
    guard let seconds else { return "" }
    let side = seconds > 0 ? "ahead of" : "behind"
    return "; the clock of this machine is \(abs(seconds)) s \(side) the service's, which allows "
      + "\(IVHAccount.clockTolerance) s; set the clock"
  }
}
