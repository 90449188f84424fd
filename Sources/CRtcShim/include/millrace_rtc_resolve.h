// Names of servers.
#pragma once

#include <stddef.h>

#pragma clang assume_nonnull begin

/// Asks the system for the addresses of a host. Blocks, for seconds where name servers do not answer. Any thread.
///
/// Writes the first address of each family with its 0 into `room` bytes, of which 64 are enough; nothing but the 0: there is none. Returns
/// 0, or the number of an error for `millrace_rtc_resolve_error`.
int millrace_rtc_resolve(const char *host, char *ipv4, char *ipv6, size_t room);

/// The error as text.
const char *millrace_rtc_resolve_error(int number);

#pragma clang assume_nonnull end
