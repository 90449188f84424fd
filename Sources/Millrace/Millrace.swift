/// Everything a bot needs: packets and nodes, graphs and their checks, the engine, and the standard catalogue.
///
/// ```swift
/// import Millrace
///
/// let plan = try Graph.load(path: "graphs/voice-uplink.json", catalogue: .standard)
/// let engine = Engine(catalogue: .standard)
/// let run = try engine.start(plan)
/// print(await run.wait())
/// ```
@_exported public import MillraceCore
@_exported public import MillraceEngine
@_exported public import MillraceGraph
