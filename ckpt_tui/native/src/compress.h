/* SHA-256's compression function (FIPS 180-4), for one message or two at once on one core. */
#ifndef CKPT_TUI_COMPRESS_H
#define CKPT_TUI_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK 64

/* The hash value a to h, as the instructions want it: {f, e, b, a} and {h, g, d, c} from the lowest word. */
typedef struct {
    uint32_t abef[4], cdgh[4];
} Value;

/* `count` blocks of each message into its value. */
typedef void Compress(Value *const *values, const uint8_t *const *messages, size_t count);

/* One way to do it. */
typedef struct {
    const char *name;
    Compress *one, *two;
} Kernel;

/* Those that this processor can run: there may be none. `abreast`: how many messages it hashes in less time together. */
typedef struct {
    const Kernel *all;
    int count;
    const Kernel *best;
    int abreast;
} Kernels;

Kernels kernels(void);

#endif
