import Millrace
import MillraceBench
import MillraceRunner

// millrace-bench [SUITE ...]: `millrace bench` with the rivals in the program.
for ring in CxxRing.all { Peers.add(ring) }
Peers.use(GStreamer())
MillraceCommand.benchMain(catalogue: .standard)
