import Millrace
import MillraceCore

/// The graphs of measured calls, and how they run.
///
/// A call has two graphs in this process: one is an endpoint of WHIP, the other publishes to it. Signalling goes over loopback; media goes
/// over an address of this machine, or over a lossy link.
struct CallStage {
  /// How the two ends of a call differ from a plain one.
  struct Form: Sendable {
    /// Signal of `bench.caller`.
    var signal = "tone"
    /// Both ends speak and hear.
    var isDuplex = false
    /// Further parameters of both ends, as members of JSON objects.
    var parameters = ""
    /// What the media goes over; nil: this machine's address.
    var network: LossyNetwork?
  }

  /// A call whose graphs run.
  struct Call {
    let caller: GraphRun
    let callee: GraphRun
    /// Hears the caller, at the callee.
    let ear: CallEar
    /// Hears the callee, at the caller; in duplex calls only.
    let callerEar: CallEar?
    let relay: CallRelay?
    /// When the caller's graph was asked for, in seconds.
    let begin: Double

    /// Milliseconds from the request to the first sound at the other end; nil: nothing was heard within some seconds.
    func wait(seconds most: Double) -> Double? {
      let end = seconds() + most
      while seconds() < end {
        if let first = ear.heard.firstAt { return (Double(first) / 1e9 - begin) * 1e3 }
        pause(0.001)
      }
      return nil
    }

    /// Ends the call, whatever its state.
    func hangUp() throws {
      for run in [caller, callee] {
        run.stop()
        guard run.waitUntilStopped(timeout: .seconds(30)) != nil else {
          throw MeasurementProblem("the graph \"\(run.name)\" was not stopped within 30 s")
        }
      }
      relay?.stop()
    }

    /// A failure of one of the graphs is a failed measurement.
    func check() throws {
      for run in [caller, callee] {
        if let failure = run.report().failure { throw MeasurementProblem("a call failed: \(failure)") }
      }
    }
  }

  let catalogue: Catalogue
  private let engine: Engine
  private let address: String

  /// - Throws: `MissingPiece` when the catalogue has no nodes of WebRTC.
  init(_ catalogue: Catalogue) throws {
    guard catalogue["rtc.whip"] != nil else {
      throw MissingPiece(text: "this program was built without the trait RTC")
    }
    var catalogue = catalogue
    catalogue.add(CallVoice.self)
    catalogue.add(CallListener.self)
    self.catalogue = catalogue
    engine = Engine(catalogue: catalogue)
    address = LocalSocket.machineAddress ?? "127.0.0.1"
  }

  /// Begins a call: the endpoint listens before the clock starts.
  func begin(_ form: Form = Form()) throws -> Call {
    let port = try LocalSocket.freePort()
    let (number, ear) = CallEars.make()
    let (otherNumber, otherEar) = CallEars.make()
    let callee = try start(
      graph("callee", form, #""listen": \#(port), "path": "/call""#, speaks: form.isDuplex, ear: number))
    do {
      try LocalSocket.waitForListener(port)
      let relay = try form.network.map { try CallRelay(to: port, over: $0) }
      let begin = seconds()
      let url = #""url": "http://127.0.0.1:\#(relay?.port ?? port)/call""#
      do {
        let caller = try start(
          graph("caller", form, url, speaks: true, ear: form.isDuplex ? otherNumber : nil))
        return Call(
          caller: caller, callee: callee, ear: ear, callerEar: form.isDuplex ? otherEar : nil, relay: relay,
          begin: begin)
      } catch {
        relay?.stop()
        throw error
      }
    } catch {
      callee.stop()
      throw error
    }
  }

  /// A call that is heard, for figures of an established call.
  func established(_ form: Form = Form(), within most: Double = 30) throws -> Call {
    let call = try begin(form)
    guard call.wait(seconds: most) != nil else {
      try? call.check()
      try call.hangUp()
      throw MeasurementProblem("nothing was heard within \(Int(most)) s")
    }
    return call
  }

  private func start(_ text: String) throws -> GraphRun {
    let plan = try Graph.load(text: text, name: "call.json", catalogue: catalogue)
    let run = try engine.prepare(plan, observesEvents: false)
    run.start()
    return run
  }

  /// - Parameters:
  ///   - side: `url`, or `listen` and `path`, as members of a JSON object.
  ///   - speaks: it has a voice.
  ///   - ear: the number of what hears there; nil: nobody.
  private func graph(_ name: String, _ form: Form, _ side: String, speaks: Bool, ear: Int?) -> String {
    // A lossy link stands between ports of loopback.
    let interface = form.network == nil ? address : "127.0.0.1"
    let more = form.parameters.isEmpty ? "" : ", \(form.parameters)"
    let mode = form.isDuplex ? "sendrecv" : "send"
    var nodes = [
      #"""
      "call": { "type": "rtc.whip", \#(side), "mode": "\#(mode)", "interfaces": ["\#(interface)"]\#(more) }
      """#
    ]
    var links: [String] = []
    if speaks {
      nodes.append(#""voice": { "type": "bench.caller", "signal": "\#(form.signal)" }"#)
      links.append(#""voice -> call.audio""#)
    }
    if let ear {
      nodes.append(#""ear": { "type": "bench.listener", "ear": \#(ear) }"#)
      links.append(#""call.audio -> ear""#)
    }
    return """
      { "millrace": 1, "name": "\(name)", "clock": "realtime",
        "nodes": { \(nodes.joined(separator: ",\n")) }, "links": [\(links.joined(separator: ", "))] }
      """
  }
}
