internal import MillraceCore
internal import MillraceGraph

extension RunBuilder {
  /// Creates the pools of the run, in the order of `PlanMemory`.
  ///
  /// Each run has its own pools. Creating one takes microseconds: it is a single allocation whose memory is touched only when used.
  func makePools() throws(StartProblem) {
    for pool in needs.pools {
      guard pool.blockBytes <= BlockPool.maxBlockBytes && pool.blockCount <= BlockPool.maxBlocks else {
        throw StartProblem(
          node: "",
          text:
            "the graph's links need \(pool.blockCount) packets of \(pool.blockBytes) bytes; a pool holds at most \(BlockPool.maxBlocks) of \(BlockPool.maxBlockBytes)",
          cure: "give the links smaller capacities, or make the packets smaller")
      }
      do throws(AllocationError) {
        memory.pools.append(try BlockPool(reserving: pool.blockCount, blocksOf: pool.blockBytes))
      } catch {
        throw StartProblem(
          node: "",
          text:
            "the system refused \(Figures.bytes(error.byteCount)) of memory, of \(Figures.bytes(needs.byteCount)) that the graph can take: \(SystemError.message(error.code))\(needs.largestClaimsClause(of: plan))",
          cure: "give the links smaller capacities, run fewer graphs at once, or raise the limit (ulimit -v)")
      }
      run.poolBytes += pool.byteCount
    }
  }

  /// The pool an output takes blocks from; nil when it allocates no packets.
  func pool(ofOutput port: Int, of node: Int) -> BlockPool? {
    if plan.nodes[node].outputs[port].name == NodeContract.eventsPort { return eventPool }
    return needs.poolOfOutput[node][port].map { memory.pools[$0] }
  }

  /// The shared pool for events of all nodes; nil when there are no events or no listeners.
  var eventPool: BlockPool? { needs.eventPool.map { memory.pools[$0] } }
}
