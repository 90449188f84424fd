// libspeexdsp as Swift sees it: its preprocessor and its echo canceller. Their control calls take a pointer, not an
// argument list, so they import as they are.
#pragma once

#include <speex/speex_echo.h>
#include <speex/speex_preprocess.h>
