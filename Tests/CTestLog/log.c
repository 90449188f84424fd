#include "CTestLog.h"

#include <stdarg.h>
#include <stdatomic.h>

#include <libavutil/log.h>

#include "CMediaShim.h"

static atomic_int lines;

__attribute__((constructor)) static void take_log(void) { millrace_av_capture_log(); }

static void count_line(void *object, int level, const char *format, va_list arguments) {
  (void)object, (void)level, (void)format, (void)arguments;
  atomic_fetch_add(&lines, 1);
}

void test_log_count(void) {
  atomic_store(&lines, 0);
  av_log_set_callback(count_line);
}

int test_log_lines(void) { return atomic_load(&lines); }

void test_log_say(void) { av_log(NULL, AV_LOG_ERROR, "a line\n"); }
