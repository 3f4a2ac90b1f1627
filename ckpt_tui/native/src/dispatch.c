/* xxHash's choice among its ways for x86. */
#include "native.h"

#if X86
#include "xxh_x86dispatch.c"
#endif
