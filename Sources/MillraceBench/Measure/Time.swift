import CMillraceSys
import Glibc

/// Seconds of a monotonic clock.
func seconds() -> Double { Double(millrace_monotonic_ns()) * 1e-9 }

/// Seconds of processor time of the process.
func processorSeconds() -> Double { Double(millrace_process_cpu_ns()) * 1e-9 }

/// Sleeps until a time on the monotonic clock, in nanoseconds.
func sleep(until time: Int64) {
  var moment = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
  while unsafe clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &moment, nil) == EINTR {}
}

/// Sleeps for a number of seconds.
func pause(_ length: Double) { sleep(until: millrace_monotonic_ns() + Int64(length * 1e9)) }

/// Keeps a value alive as far as the optimiser can see.
@inline(never)
func use<T>(_ value: T) {}

/// Runs contestants in turns and returns what each measured, round by round.
///
/// A different contestant starts each round, so that a machine that slows down favours none. The first round warms caches and
/// pools and is not counted.
func inTurns(rounds: Int, _ contestants: [() throws -> Double]) throws -> [[Double]] {
  var measured = [[Double]](repeating: [], count: contestants.count)
  for round in 0...rounds {
    for turn in contestants.indices {
      let who = (round + turn) % contestants.count
      let value = try contestants[who]()
      if round > 0 { measured[who].append(value) }
    }
  }
  return measured
}
