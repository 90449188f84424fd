import MillraceCore
import MillraceRunner

MillraceCommand.main(catalogue: Catalogue())
