#include "CMillraceSys.h"
