internal import MillraceCore
internal import MillraceGraph

extension RunBuilder {
  /// Makes the pools of the run, in the order `PlanMemory` has them.
  ///
  /// Every run makes its own pools and frees them: some microseconds, since a pool is one allocation whose memory is only touched
  /// as it is used.
  func makePools() throws(StartProblem) {
    for pool in needs.pools {
      guard pool.blockBytes <= BlockPool.mostBlockBytes && pool.blockCount <= BlockPool.mostBlocks else {
        throw StartProblem(
          node: "",
          text:
            "links of the graph need \(pool.blockCount) packets of \(pool.blockBytes) bytes; a pool has at most \(BlockPool.mostBlocks) of \(BlockPool.mostBlockBytes)",
          cure: "give the links smaller capacities, or make the packets smaller")
      }
      do throws(MemoryRefusal) {
        memory.pools.append(try BlockPool(reserving: pool.blockCount, blocksOf: pool.blockBytes))
      } catch {
        throw StartProblem(
          node: "",
          text:
            "the system refused \(Figures.bytes(error.byteCount)) of memory, of \(Figures.bytes(needs.byteCount)) that the graph can take: \(SystemError.words(error.code))\(needs.mostOfIt(of: plan))",
          cure: "give the links smaller capacities, run fewer graphs at once, or raise the limit (ulimit -v)")
      }
      run.poolBytes += pool.byteCount
    }
  }

  /// The pool an output takes its blocks from; nil for one without packets of its own.
  func pool(ofOutput port: Int, of node: Int) -> BlockPool? {
    if plan.nodes[node].outputs[port].name == NodeContract.eventsPort { return eventPool }
    return needs.poolOfOutput[node][port].map { memory.pools[$0] }
  }

  /// One pool for the events of all nodes; nil when there are none or nobody listens.
  var eventPool: BlockPool? { needs.eventPool.map { memory.pools[$0] } }
}
