public import MillraceCore

extension Catalogue {
  /// The nodes of this target: `flow.tee`, `flow.null`, `text.print`, `event.log`, `process.pipe`.
  public static var flow: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(FlowTee.self)
    catalogue.add(FlowNull.self)
    catalogue.add(TextPrint.self)
    catalogue.add(EventLog.self)
    catalogue.add(ProcessPipe.self)
    return catalogue
  }
}
