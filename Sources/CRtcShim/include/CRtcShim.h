// The libraries below WebRTC, for Swift: libnice, OpenSSL, libsrtp2 and usrsctp. Their signals, callbacks and macros are hidden here; the
// interface has plain functions and opaque pointers.
#pragma once

#include "millrace_rtc_datagram.h"
#include "millrace_rtc_dtls.h"
#include "millrace_rtc_ice.h"
#include "millrace_rtc_loop.h"
#include "millrace_rtc_resolve.h"
#include "millrace_rtc_sctp.h"
#include "millrace_rtc_srtp.h"
