// libasound as Swift sees it: sound cards without a server, and whatever ALSA's plugins make of them.
#pragma once

#include <alsa/asoundlib.h>
