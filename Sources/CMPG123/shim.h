// libmpg123 as Swift sees it. Every call imports as it is but those that take a file offset, which the header renames
// by the size of off_t; on the 64-bit systems Millrace runs on, the plain names are the 64-bit ones.
#pragma once

#define MPG123_NO_LARGENAME
#include <mpg123.h>
