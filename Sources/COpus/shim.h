// libopus as Swift sees it: the library's own header, and typed functions in place of its variadic control calls.
#pragma once

#include <opus/opus.h>

#include "encoder_controls.h"
#include "decoder_controls.h"
