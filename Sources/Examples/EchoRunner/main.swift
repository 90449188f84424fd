import EchoService
import Millrace
import MillraceRunner

// `millrace` with one more service: echo-runner double echo, echo-runner test-node echo.dialog.
var catalogue = Catalogue.standard
catalogue.add(contentsOf: .echo)
MillraceCommand.main(catalogue: catalogue, name: "echo-runner", services: [EchoProgram.self])
