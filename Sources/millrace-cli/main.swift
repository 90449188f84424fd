import Millrace
import MillraceRunner

MillraceCommand.main(catalogue: .standard)
