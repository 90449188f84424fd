import MillraceCore
import Testing

@Suite("The memory a process can have")
struct MachineMemoryTests {
  private let machine = "MemTotal:       16384 kB\nMemFree:         1024 kB\n"

  private func limit(_ files: [String: String]) -> MachineMemory? {
    MachineMemory.limit { files[$0] }
  }

  @Test("without a control group it is the machine's")
  func plain() throws {
    let found = try #require(limit(["/proc/meminfo": machine]))
    #expect(found.bytes == 16_777_216)
    #expect(found.source == .machine)
    #expect(limit([:]) == nil)
    #expect(limit(["/proc/meminfo": "nothing of the kind\n"]) == nil)
  }

  @Test("of a control group of version 2 and those around it the smallest limit holds")
  func second() throws {
    let files = [
      "/proc/meminfo": machine, "/proc/self/cgroup": "0::/system.slice/bot.service\n",
      "/sys/fs/cgroup/system.slice/bot.service/memory.max": "max\n",
      "/sys/fs/cgroup/system.slice/memory.max": "8000000\n",
    ]
    let found = try #require(limit(files))
    #expect(found.bytes == 8_000_000)
    #expect(found.source == .controlGroup("/system.slice"))
  }

  @Test("inside a container the group's path may lead nowhere: its own group is the top")
  func container() throws {
    for path in ["/", "/docker/0123", "/../../other"] {
      let files = [
        "/proc/meminfo": machine, "/proc/self/cgroup": "0::\(path)\n",
        "/sys/fs/cgroup/memory.max": "5000000\n",
        // What lies outside of the hierarchy is nobody's limit.
        "/sys/fs/cgroup/../../other/memory.max": "1\n",
      ]
      let found = try #require(limit(files))
      #expect(found.bytes == 5_000_000)
      #expect(found.source == .controlGroup("/"))
    }
  }

  @Test("of version 1 the group of the memory controller counts, and its largest number is no limit")
  func first() throws {
    var files = [
      "/proc/meminfo": machine,
      "/proc/self/cgroup": "5:cpu,cpuacct:/fast\n4:hugetlb,memory:/bots\n0::/\n",
      "/sys/fs/cgroup/memory/bots/memory.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/memory/fast/memory.limit_in_bytes": "1\n",
    ]
    #expect(limit(files)?.source == .machine)
    files["/sys/fs/cgroup/memory/bots/memory.limit_in_bytes"] = "6000000\n"
    #expect(limit(files)?.bytes == 6_000_000)
    #expect(limit(files)?.source == .controlGroup("/bots"))
  }

  @Test("this machine tells its own")
  func here() throws {
    // Less than a megabyte runs no Swift, and more than an exabyte no machine has.
    #expect((1 << 20...1 << 60).contains(try #require(MachineMemory.limit()).bytes))
  }

  @Test("sums of bytes stop at the largest number")
  func sums() {
    #expect(Int.max.addingClamped(1) == .max)
    #expect((Int.max / 2 + 1).multipliedClamped(by: 2) == .max)
    #expect([1, 2, 3].clampedSum == 6)
    #expect([Int.max, .max].clampedSum == .max)
    #expect(BlockPool.byteCount(blockBytes: BlockPool.mostBlockBytes, blockCount: .max) == .max)
  }
}
