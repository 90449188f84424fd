import MillraceCore
import Testing

@Suite("machine memory")
struct MachineMemoryTests {
  private let machine = "MemTotal:       16384 kB\nMemFree:         1024 kB\n"

  private func limit(_ files: [String: String]) -> MachineMemory? {
    MachineMemory.limit { files[$0] }
  }

  @Test("without a control group the limit is the installed memory")
  func plain() throws {
    let found = try #require(limit(["/proc/meminfo": machine]))
    #expect(found.bytes == 16_777_216)
    #expect(found.source == .machine)
    #expect(limit([:]) == nil)
    #expect(limit(["/proc/meminfo": "nothing of the kind\n"]) == nil)
  }

  @Test("the smallest limit of a version 2 control group and its ancestors applies")
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

  @Test("inside a container whose group path does not exist, its own group is the root")
  func container() throws {
    for path in ["/", "/docker/0123", "/../../other"] {
      let files = [
        "/proc/meminfo": machine, "/proc/self/cgroup": "0::\(path)\n",
        "/sys/fs/cgroup/memory.max": "5000000\n",
        // Outside the hierarchy, so not a limit.
        "/sys/fs/cgroup/../../other/memory.max": "1\n",
      ]
      let found = try #require(limit(files))
      #expect(found.bytes == 5_000_000)
      #expect(found.source == .controlGroup("/"))
    }
  }

  @Test("in version 1 the memory controller's group applies, and its largest number means no limit")
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

  @Test("this machine reports a limit")
  func here() throws {
    // Swift does not run in less than a megabyte, and no machine has more than an exabyte.
    #expect((1 << 20...1 << 60).contains(try #require(MachineMemory.limit()).bytes))
  }

  @Test("sums of bytes saturate")
  func sums() {
    #expect(Int.max.addingClamped(1) == .max)
    #expect((Int.max / 2 + 1).multipliedClamped(by: 2) == .max)
    #expect([1, 2, 3].clampedSum == 6)
    #expect([Int.max, .max].clampedSum == .max)
    #expect(BlockPool.byteCount(blockBytes: BlockPool.maxBlockBytes, blockCount: .max) == .max)
  }
}
