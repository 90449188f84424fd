// libsamplerate as Swift sees it. Its ratio may change with every call, which is what following a clock takes.
#pragma once

#include <samplerate.h>
