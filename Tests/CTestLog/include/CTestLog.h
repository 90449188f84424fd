// FFmpeg's log in tests. Test programs take it when they begin, as `millrace` does, so that errors quote the library's words.
#pragma once

/// Counts FFmpeg's lines from now on, as a program does that has a log of its own.
void test_log_count(void);

/// Lines since then.
int test_log_lines(void);

/// Has FFmpeg log a line.
void test_log_say(void);
