/* SHA-256 blocks by the processor's own instructions (SHA-NI), in two ways of which each is the quicker one somewhere.
 *
 * A round needs the one before, and its instruction has a long latency: one message leaves the unit idle for half of
 * the time, and two that have nothing to do with each other fill it. That is so where the instructions for the message
 * schedule are quick (AMD). Where they are slow (Intel's servers) they fill the unit by themselves; but a schedule does
 * not depend on rounds, so ordinary vectors make those of two blocks at once, on units that the rounds leave idle. */
#include "native.h"

#include "compress.h"

#if X86
#include <cpuid.h>
#include <immintrin.h>

#define KERNEL(TARGET) __attribute__((noinline, target(TARGET)))
#define SHA_NI "sha,ssse3,sse4.1"
#define SHA_NI_AVX512 SHA_NI ",avx2,avx512f,avx512bw,avx512vl"

static const uint32_t ROUNDS[64] __attribute__((aligned(64))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The bytes of four words turned around. */
static const uint8_t TURNED[16] __attribute__((aligned(16))) = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};

#define FROM(MEMORY) _mm_loadu_si128((const __m128i *)(MEMORY))
#define TO(MEMORY, VECTOR) _mm_storeu_si128((__m128i *)(MEMORY), VECTOR)

/* LANES messages, all by the instructions. Unrolled for a known number, so that everything stays in registers. */
#define COMPRESS(LANES)                                                                                            \
    KERNEL(SHA_NI) static void plain##LANES(Value *const *values, const uint8_t *const *messages, size_t count) {  \
        const __m128i turned = FROM(TURNED);                                                                       \
        __m128i abef[LANES], cdgh[LANES];                                                                          \
        const uint8_t *at[LANES];                                                                                  \
        for (int lane = 0; lane < LANES; lane++) {                                                                 \
            abef[lane] = FROM(values[lane]->abef);                                                                 \
            cdgh[lane] = FROM(values[lane]->cdgh);                                                                 \
            at[lane] = messages[lane];                                                                             \
        }                                                                                                          \
        while (count--) {                                                                                          \
            __m128i a[LANES], c[LANES], words[LANES][4];                                                           \
            for (int lane = 0; lane < LANES; lane++) {                                                             \
                a[lane] = abef[lane];                                                                              \
                c[lane] = cdgh[lane];                                                                              \
                for (int part = 0; part < 4; part++)                                                               \
                    words[lane][part] = _mm_shuffle_epi8(FROM(at[lane] + 16 * part), turned);                      \
                at[lane] += BLOCK;                                                                                 \
            }                                                                                                      \
            _Pragma("GCC unroll 16") for (int four = 0; four < 16; four++) {                                       \
                const __m128i constants = FROM(ROUNDS + 4 * four);                                                 \
                _Pragma("GCC unroll 2") for (int lane = 0; lane < LANES; lane++) {                                 \
                    __m128i *w = words[lane];                                                                      \
                    __m128i sum = _mm_add_epi32(w[four & 3], constants);                                           \
                    c[lane] = _mm_sha256rnds2_epu32(c[lane], a[lane], sum);                                        \
                    a[lane] = _mm_sha256rnds2_epu32(a[lane], c[lane], _mm_shuffle_epi32(sum, 0x0e));               \
                    if (four < 12) {                                                                               \
                        __m128i next = _mm_sha256msg1_epu32(w[four & 3], w[(four + 1) & 3]);                       \
                        next = _mm_add_epi32(next, _mm_alignr_epi8(w[(four + 3) & 3], w[(four + 2) & 3], 4));      \
                        w[four & 3] = _mm_sha256msg2_epu32(next, w[(four + 3) & 3]);                               \
                    }                                                                                              \
                }                                                                                                  \
            }                                                                                                      \
            for (int lane = 0; lane < LANES; lane++) {                                                             \
                abef[lane] = _mm_add_epi32(abef[lane], a[lane]);                                                   \
                cdgh[lane] = _mm_add_epi32(cdgh[lane], c[lane]);                                                   \
            }                                                                                                      \
        }                                                                                                          \
        for (int lane = 0; lane < LANES; lane++) {                                                                 \
            TO(values[lane]->abef, abef[lane]);                                                                    \
            TO(values[lane]->cdgh, cdgh[lane]);                                                                    \
        }                                                                                                          \
    }

COMPRESS(1)
COMPRESS(2)

/* The message schedules of two blocks in vectors of 256 bits, a half for each, and to every word its constant added.
 *
 * They stay in registers 16 to 31, which only assembler can be made to do: the instructions of the rounds have the old
 * encoding, and take half as long again while any of the registers 0 to 15 holds more than 128 bits. */
typedef uint32_t Sums[16][8];

#define BYTES(COUNT, AT) (*(const uint8_t(*)[COUNT])(AT))

/* x = (W >>> A) ^ (W >>> B) ^ (W >> C) */
#define SIGMA(W, A, B, C)                                                                                     \
    "vprord $" #A ", %[" #W "], %[y]\n\tvprord $" #B ", %[" #W "], %[z]\n\t"                                  \
    "vpsrld $" #C ", %[" #W "], %[x]\n\tvpternlogd $0x96, %[y], %[z], %[x]\n\t"
#define ADD_X "vpaddd %[x], %[w0], %[w0]\n\t"
#define KEEP_SUMS "vbroadcasti32x4 %[constants], %[x]\n\tvpaddd %[w0], %[x], %[x]\n\tvmovdqu32 %[x], %[sums]"

/* Four words of each block as they come in the messages. */
#define FIRST(FOUR, W0)                                                                                       \
    __asm__ volatile("vmovdqu32 %[one], %x[x]\n\tvinserti32x4 $1, %[other], %[x], %[x]\n\t"                   \
                     "vpshufb %[turned], %[x], %[w0]\n\t" KEEP_SUMS                                           \
                     : [w0] "=&v"(W0), [x] "=&v"(x), [sums] "=m"(next[FOUR])                                  \
                     : [one] "m"(BYTES(16, one + 16 * FOUR)), [other] "m"(BYTES(16, other + 16 * FOUR)),      \
                       [constants] "m"(BYTES(16, ROUNDS + 4 * FOUR)), [turned] "v"(turned))

/* Four words of each block from the sixteen before. The last two of the four need the first two. */
#define OTHER(FOUR, W0, W1, W2, W3)                                                                           \
    __asm__ volatile("vpalignr $4, %[w0], %[w1], %[x]\n\t" SIGMA(x, 7, 18, 3) ADD_X                           \
                     "vpalignr $4, %[w2], %[w3], %[x]\n\t" ADD_X                                              \
                     SIGMA(w3, 17, 19, 10) "vpsrldq $8, %[x], %[x]\n\t" ADD_X                                 \
                     SIGMA(w0, 17, 19, 10) "vpslldq $8, %[x], %[x]\n\t" ADD_X KEEP_SUMS                       \
                     : [w0] "+v"(W0), [x] "=&v"(x), [y] "=&v"(y), [z] "=&v"(z), [sums] "=m"(next[FOUR])       \
                     : [w1] "v"(W1), [w2] "v"(W2), [w3] "v"(W3),                                              \
                       [constants] "m"(BYTES(16, ROUNDS + 4 * FOUR)))

/* The schedule in sixteen steps, and after each a sixteenth of the rounds of the blocks before. */
#define SCHEDULE(ROUNDS_AFTER)                                                                                \
    FIRST(0, a);              ROUNDS_AFTER(0)  FIRST(1, b);              ROUNDS_AFTER(1)                      \
    FIRST(2, c);              ROUNDS_AFTER(2)  FIRST(3, d);              ROUNDS_AFTER(3)                      \
    OTHER(4, a, b, c, d);     ROUNDS_AFTER(4)  OTHER(5, b, c, d, a);     ROUNDS_AFTER(5)                      \
    OTHER(6, c, d, a, b);     ROUNDS_AFTER(6)  OTHER(7, d, a, b, c);     ROUNDS_AFTER(7)                      \
    OTHER(8, a, b, c, d);     ROUNDS_AFTER(8)  OTHER(9, b, c, d, a);     ROUNDS_AFTER(9)                      \
    OTHER(10, c, d, a, b);    ROUNDS_AFTER(10) OTHER(11, d, a, b, c);    ROUNDS_AFTER(11)                     \
    OTHER(12, a, b, c, d);    ROUNDS_AFTER(12) OTHER(13, b, c, d, a);    ROUNDS_AFTER(13)                     \
    OTHER(14, c, d, a, b);    ROUNDS_AFTER(14) OTHER(15, d, a, b, c);    ROUNDS_AFTER(15)
#define NONE(FOUR)

#define INLINE static inline __attribute__((always_inline, target(SHA_NI)))

/* A value on its way through a block, and what it was before. */
typedef struct {
    __m128i abef, cdgh, old_abef, old_cdgh;
} Way;

INLINE void enter(Way *way, const Value *value) {
    way->abef = way->old_abef = FROM(value->abef);
    way->cdgh = way->old_cdgh = FROM(value->cdgh);
}

INLINE void four_rounds(Way *way, const uint32_t *sums) {
    way->cdgh = _mm_sha256rnds2_epu32(way->cdgh, way->abef, _mm_loadl_epi64((const __m128i *)sums));
    way->abef = _mm_sha256rnds2_epu32(way->abef, way->cdgh, _mm_loadl_epi64((const __m128i *)(sums + 2)));
}

INLINE void end_block(Way *way) {
    way->abef = way->old_abef = _mm_add_epi32(way->old_abef, way->abef);
    way->cdgh = way->old_cdgh = _mm_add_epi32(way->old_cdgh, way->cdgh);
}

INLINE void leave(const Way *way, Value *value) {
    TO(value->abef, way->abef);
    TO(value->cdgh, way->cdgh);
}

/* Two streams at this speed are more than the processor fetches ahead by itself. An address behind the end does no harm. */
#define PREFETCH                                                                                              \
    _mm_prefetch((const char *)one + 16 * BLOCK, _MM_HINT_T0);                                                \
    _mm_prefetch((const char *)other + 16 * BLOCK, _MM_HINT_T0);

/* What both functions begin with: registers without anything that is wider than 128 bits, and the first two blocks. */
#define BEGIN_WIDE(ONE, OTHER_)                                                                               \
    register __m256i a __asm__("ymm16"), b __asm__("ymm17"), c __asm__("ymm18"), d __asm__("ymm19");          \
    register __m256i x __asm__("ymm20"), y __asm__("ymm21"), z __asm__("ymm22"), turned __asm__("ymm23");     \
    const uint8_t *one = ONE, *other = OTHER_;                                                                \
    Sums sums[2] __attribute__((aligned(64)));                                                                \
    uint32_t(*next)[8] = sums[0];                                                                             \
    _mm256_zeroupper();                                                                                       \
    __asm__ volatile("vbroadcasti32x4 %1, %0" : "=v"(turned) : "m"(TURNED));                                  \
    SCHEDULE(NONE)

/* A block of each of two messages at a time. */
KERNEL(SHA_NI_AVX512) static void wide2(Value *const *values, const uint8_t *const *messages, size_t count) {
    if (!count) return;
    BEGIN_WIDE(messages[0], messages[1])
    Way first, second;
    enter(&first, values[0]);
    enter(&second, values[1]);
    for (size_t block = 0; block < count; block++) {
        const uint32_t(*now)[8] = (const uint32_t(*)[8])next;
        next = sums[~block & 1];
        if (block + 1 < count) one += BLOCK, other += BLOCK; /* else in vain, once more */
        PREFETCH
#define BOTH(FOUR) four_rounds(&first, now[FOUR]); four_rounds(&second, now[FOUR] + 4);
        SCHEDULE(BOTH)
        end_block(&first);
        end_block(&second);
    }
    leave(&first, values[0]);
    leave(&second, values[1]);
}

/* Two blocks of a message at a time. */
KERNEL(SHA_NI_AVX512) static void wide1(Value *const *values, const uint8_t *const *messages, size_t count) {
    const uint8_t *message = messages[0];
    if (count % 2) {
        plain1(values, &message, 1);
        message += BLOCK;
    }
    if (count < 2) return;
    BEGIN_WIDE(message, message + BLOCK)
    Way way;
    enter(&way, values[0]);
    for (size_t pair = 0; pair < count / 2; pair++) {
        const uint32_t(*now)[8] = (const uint32_t(*)[8])next;
        next = sums[~pair & 1];
        if (pair + 1 < count / 2) one += 2 * BLOCK, other += 2 * BLOCK;
        PREFETCH
#define EIGHT(FOUR)                                            \
        four_rounds(&way, now[2 * FOUR % 16] + FOUR / 8 * 4);  \
        four_rounds(&way, now[2 * FOUR % 16 + 1] + FOUR / 8 * 4); \
        if (FOUR % 8 == 7) end_block(&way);
        SCHEDULE(EIGHT)
    }
    leave(&way, values[0]);
}

Kernels kernels(void) {
    static const Kernel all[] = {{"sha", plain1, plain2}, {"sha+avx512", wide1, wide2}};
    Kernels found = {all, 0, all, 1};
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return found;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 29))) return found;
    __builtin_cpu_init();
    /* These ask the operating system as well, which has to keep the wider registers. */
    int wide = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    int slow_schedule = !!__builtin_cpu_is("intel");
    found.count = 1 + wide;
    found.best = &all[wide && slow_schedule];
    found.abreast = wide || !slow_schedule ? 2 : 1;
    return found;
}

#else

Kernels kernels(void) { return (Kernels){NULL, 0, NULL, 1}; }

#endif
