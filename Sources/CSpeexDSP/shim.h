// libspeexdsp for Swift: its preprocessor and its echo canceller. Their control calls take a pointer, not variadic
// arguments, so they import unchanged.
#pragma once

#include <speex/speex_echo.h>
#include <speex/speex_preprocess.h>
