#include "CMediaShim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/error.h>
#include <libavutil/log.h>

// FFmpeg formats its own lines into 1,024 bytes; useful messages are far shorter.
enum { line_capacity = 512 };

static _Thread_local char first_line[line_capacity];
static _Thread_local char last_line[line_capacity];
static _Thread_local char pending[line_capacity];
// FFmpeg may build one line in several calls; this is whether the next call begins a line.
static _Thread_local int starts_line = 1;
static _Thread_local char error_text[AV_ERROR_MAX_STRING_SIZE + 32];

static void keep_line(void *avcl, int level, const char *format, va_list arguments) {
  // The upper bits of a non-negative level hold a colour.
  if ((level >= 0 ? level & 0xff : level) > AV_LOG_ERROR) return;
  char part[line_capacity];
  av_log_format_line2(avcl, level, format, arguments, part, sizeof part, &starts_line);
  size_t used = strlen(pending);
  snprintf(pending + used, sizeof pending - used, "%s", part);
  size_t length = strlen(pending);
  if (!starts_line && length + 1 < sizeof pending) return;
  while (length > 0 && (pending[length - 1] == '\n' || pending[length - 1] == '\r')) pending[--length] = 0;
  // Skip blank lines and keep the previous one.
  if (length > 0) memcpy(last_line, pending, length + 1);
  if (length > 0 && !first_line[0]) memcpy(first_line, pending, length + 1);
  pending[0] = 0;
}

void millrace_av_capture_log(void) { av_log_set_callback(keep_line); }

const char *millrace_av_last_log(void) {
  // A message without a line end counts too.
  return last_line[0] ? last_line : pending;
}

const char *millrace_av_first_log(void) { return first_line[0] ? first_line : pending; }

void millrace_av_clear_log(void) {
  first_line[0] = 0;
  last_line[0] = 0;
  pending[0] = 0;
  starts_line = 1;
}

const char *millrace_av_error_text(int averror) {
  if (av_strerror(averror, error_text, sizeof error_text) < 0) {
    snprintf(error_text, sizeof error_text, "unknown error %d", averror);
  }
  return error_text;
}
