// libmpg123 for Swift. All calls import unchanged except those that take a file offset, which the header renames by the size
// of off_t; on the 64-bit systems Millrace runs on, the plain names are the 64-bit ones.
#pragma once

#define MPG123_NO_LARGENAME
#include <mpg123.h>
