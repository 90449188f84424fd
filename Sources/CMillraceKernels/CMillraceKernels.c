#include "CMillraceKernels.h"
