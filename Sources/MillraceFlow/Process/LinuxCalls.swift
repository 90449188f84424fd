internal import Glibc

// Calls of glibc that its module map keeps from Swift, because they are declared for _GNU_SOURCE only. Plain C functions of
// integers and pointers, which Swift passes as C does.

/// pipe2(2): both ends of a pipe, with flags set from the start, so that no other thread's child can inherit them.
@unsafe
@_silgen_name("pipe2")
func linuxPipe(_ ends: UnsafeMutablePointer<Int32>, _ flags: Int32) -> Int32

/// Adds to a child's start: enter a directory. glibc 2.29.
@unsafe
@_silgen_name("posix_spawn_file_actions_addchdir_np")
func linuxSpawnEnterDirectory(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ path: UnsafePointer<CChar>
) -> Int32

/// Adds to a child's start: close every descriptor from `first` on. glibc 2.34.
@unsafe
@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
func linuxSpawnCloseFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32

/// fcntl(2) command: the size of a pipe, linux/fcntl.h.
let linuxSetPipeSize: Int32 = 1031

/// F_GETPIPE_SZ of fcntl(2): bytes a pipe holds.
let linuxGetPipeSize: Int32 = 1032
