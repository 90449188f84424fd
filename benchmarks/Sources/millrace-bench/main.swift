import Millrace
import MillraceBench
import MillraceRunner

// millrace-bench [SUITE ...]: `millrace bench` with the peers linked in.
for ring in CxxRing.all { Peers.add(ring) }
Peers.use(GStreamer())
MillraceCommand.benchMain(catalogue: .standard)
