/* xxHash's choice among its ways for x86, which other processors have no use for. */
#if defined(__x86_64__) && defined(__GNUC__)
#include "xxh_x86dispatch.c"
#else
typedef int nothing_to_choose;
#endif
