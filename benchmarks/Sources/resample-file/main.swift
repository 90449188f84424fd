// resample-file IN_RATE OUT_RATE in.f32 out.f32 [low|voice|high]
//
// Resamples raw mono float32 in chunks of 10 ms, as a live graph would, and prints one line for scoring scripts:
// `cpuSeconds audioSeconds outputSamples heldMilliseconds`. The CPU time covers the resampling only. The
// output is not shifted: the script finds the delay in the signal.
import Glibc
import MillraceDSP

func fail(_ text: String) -> Never {
  let line = "resample-file: \(text)\n"
  _ = line.withCString { write(2, $0, strlen($0)) }
  exit(2)
}

func readFloats(_ path: String) -> [Float] {
  guard let file = fopen(path, "rb") else { fail("cannot open \"\(path)\" (errno \(errno))") }
  defer { fclose(file) }
  fseek(file, 0, SEEK_END)
  let count = ftell(file) / MemoryLayout<Float>.stride
  rewind(file)
  return [Float](unsafeUninitializedCapacity: count) { buffer, filled in
    filled = fread(buffer.baseAddress, MemoryLayout<Float>.stride, count, file)
  }
}

func writeFloats(_ samples: ArraySlice<Float>, to path: String) {
  guard let file = fopen(path, "wb") else { fail("cannot create \"\(path)\" (errno \(errno))") }
  let written = samples.withUnsafeBufferPointer {
    fwrite($0.baseAddress, MemoryLayout<Float>.stride, $0.count, file)
  }
  guard fclose(file) == 0, written == samples.count else { fail("cannot write \"\(path)\" (errno \(errno))") }
}

func cpuSeconds() -> Double {
  var now = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now)
  return Double(now.tv_sec) + Double(now.tv_nsec) * 1e-9
}

func main() {
  let arguments = CommandLine.arguments
  guard arguments.count == 5 || arguments.count == 6, let inputRate = Int(arguments[1]),
    let outputRate = Int(arguments[2]),
    let quality = Resampler.Quality(rawValue: arguments.count == 6 ? arguments[5] : "voice")
  else { fail("usage: resample-file IN_RATE OUT_RATE in.f32 out.f32 [low|voice|high]") }

  let input = readFloats(arguments[3])
  do {
    var resampler = try Resampler(from: inputRate, to: outputRate, quality: quality)
    var output = [Float]()
    output.reserveCapacity(resampler.maximumOutputCount(forInput: input.count))
    let chunk = inputRate / 100
    var frame = [Float](repeating: 0, count: resampler.maximumOutputCount(forInput: chunk))
    var used = 0.0
    var taken = 0
    while taken < input.count {
      let start = cpuSeconds()
      // A second of audio per clock reading, whose own cost would otherwise be measured.
      for _ in 0..<100 where taken < input.count {
        let piece = input.span.extracting(taken..<min(taken + chunk, input.count))
        var room = frame.mutableSpan
        let progress = resampler.process(piece, into: &room)
        output.append(contentsOf: frame[..<progress.produced])
        taken += progress.consumed
      }
      used += cpuSeconds() - start
    }
    writeFloats(output[...], to: arguments[4])
    print(used, Double(input.count) / Double(inputRate), output.count, 0.0)
  } catch {
    fail(error.description)
  }
}

main()
