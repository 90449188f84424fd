public import MillraceCore

extension Catalogue {
  /// The nodes of this target: `flow.tee`, `flow.null`, `text.print`, `event.log`, `process.pipe`, `app.source`,
  /// `app.sink`.
  public static var flow: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(FlowTee.self)
    catalogue.add(FlowNull.self)
    catalogue.add(TextPrint.self)
    catalogue.add(EventLog.self)
    catalogue.add(ProcessPipe.self)
    catalogue.add(AppSource.self)
    catalogue.add(AppSink.self)
    return catalogue
  }
}
