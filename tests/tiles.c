/* Source: Intel, Architecture Instruction Set Extensions Programming Reference, chapter 3 (AMX): encodings of the
 * instructions and what they do. */
#include "tests/tiles.h"

#include "runtime/processor.h"

#if defined(__x86_64__)
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, LANES = ROW_BYTES / 4, CONFIGURATION_BYTES = 64 };

/* State of a thread, as the processor keeps it. */
static _Thread_local struct {
    uint8_t rows[TILES], row_bytes[TILES];
    uint8_t data[TILES][ROWS][ROW_BYTES];
} state;

/* ---- instructions ---- */

static void configure(const uint8_t *from)
{
    memset(&state, 0, sizeof state);
    for (int t = 0; t < TILES; t++) {
        uint16_t bytes;
        memcpy(&bytes, from + 16 + 2 * t, sizeof bytes);
        state.row_bytes[t] = (uint8_t)bytes;
        state.rows[t] = from[48 + t];
    }
}

static void load(int tile, const uint8_t *from, int64_t stride)
{
    memset(state.data[tile], 0, sizeof state.data[tile]);
    for (int r = 0; r < state.rows[tile]; r++) memcpy(state.data[tile][r], from + r * stride, state.row_bytes[tile]);
}

static void store(int tile, uint8_t *to, int64_t stride)
{
    for (int r = 0; r < state.rows[tile]; r++) memcpy(to + r * stride, state.data[tile][r], state.row_bytes[tile]);
}

static float flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static float of_bf16(const uint8_t *from)
{
    uint32_t bits = (uint32_t)(from[0] | from[1] << 8) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

/* Even and odd elements are summed apart, then both, then what there was. */
static float dot(const uint8_t *row, int b, int column, float sum)
{
    float even = 0, odd = 0;
    for (int k = 0; k < LANES; k++) {
        const uint8_t *pair = state.data[b][k] + 4 * column;
        even = flushed(fmaf(of_bf16(row + 4 * k), of_bf16(pair), even));
        odd = flushed(fmaf(of_bf16(row + 4 * k + 2), of_bf16(pair + 2), odd));
    }
    return flushed(flushed(even + odd) + sum);
}

static void multiply(int to, int a, int b)
{
    for (int r = 0; r < state.rows[to]; r++)
        for (int column = 0; column < LANES; column++) {
            float sum;
            memcpy(&sum, state.data[to][r] + 4 * column, sizeof sum);
            sum = dot(state.data[a][r], b, column, sum);
            memcpy(state.data[to][r] + 4 * column, &sum, sizeof sum);
        }
}

/* ---- decoding ---- */

/* Fields of an instruction with a VEX prefix of three bytes. */
struct instruction {
    int prefix, opcode;  /* prefix: 0 none, 1 66, 2 F3, 3 F2 */
    int reg, rm, vector; /* numbers of tiles; rm: if it is not an address */
    bool in_memory;
    uint8_t *address;
    int64_t stride;
    int length;
};

static int64_t register_of(const greg_t *all, int number)
{
    static const int order[] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
    return all[order[number]];
}

/* at: after the ModRM byte. Bases with a displacement of their own kind are none of ours. */
static bool decode_address(const uint8_t *code, int at, const greg_t *all, struct instruction *i)
{
    const int mod = code[4] >> 6, index_high = code[1] & 0x40 ? 0 : 8, base_high = code[1] & 0x20 ? 0 : 8;
    int base = i->rm + base_high;
    if (i->rm == 4) {
        const uint8_t sib = code[at++];
        base = (sib & 7) + base_high;
        const int index = (sib >> 3 & 7) + index_high;
        if (index != 4) i->stride = register_of(all, index) * (1 << (sib >> 6));
    }
    if (mod == 0 && (base & 7) == 5) return false;
    int32_t displacement = 0;
    if (mod == 1) displacement = (int8_t)code[at++];
    if (mod == 2) {
        memcpy(&displacement, code + at, sizeof displacement);
        at += 4;
    }
    i->address = (uint8_t *)(uintptr_t)(register_of(all, base) + displacement);
    i->length = at;
    return true;
}

static bool decode(const uint8_t *code, const greg_t *all, struct instruction *i)
{
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || code[2] & 0x84) return false; /* map 0F38, W 0, 128 bits */
    *i = (struct instruction) { .prefix = code[2] & 3,
        .opcode = code[3],
        .vector = ~code[2] >> 3 & 15,
        .reg = code[4] >> 3 & 7,
        .rm = code[4] & 7,
        .in_memory = code[4] >> 6 != 3,
        .length = 5 };
    return !i->in_memory || decode_address(code, 5, all, i);
}

static bool carry_out(const struct instruction *i)
{
    enum { NONE, OPERAND, REP, REPNE };
    if (i->opcode == 0x49 && i->prefix == NONE && i->in_memory)
        configure(i->address);
    else if (i->opcode == 0x49 && i->prefix == NONE)
        memset(&state, 0, sizeof state);
    else if (i->opcode == 0x49 && i->prefix == REPNE)
        memset(state.data[i->reg], 0, sizeof state.data[i->reg]);
    else if (i->opcode == 0x4b && i->prefix == REPNE)
        load(i->reg, i->address, i->stride);
    else if (i->opcode == 0x4b && i->prefix == REP)
        store(i->reg, i->address, i->stride);
    else if (i->opcode == 0x5c && i->prefix == REP)
        multiply(i->reg, i->rm, i->vector);
    else
        return false;
    return true;
}

static void on_illegal(int number, siginfo_t *info, void *context)
{
    greg_t *all = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct instruction instruction;
    (void)info;
    if (decode((const uint8_t *)(uintptr_t)all[REG_RIP], all, &instruction) && carry_out(&instruction))
        all[REG_RIP] += instruction.length;
    else
        signal(number, SIG_DFL); /* it ends the program as it comes again */
}

const char *tiles_use(tutti_runtime *runtime)
{
    if (processor_tiles_refusal()) {
        struct sigaction action = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO };
        sigemptyset(&action.sa_mask);
        if (sigaction(SIGILL, &action, NULL) != 0) return "the handler of illegal instructions cannot be set";
    }
    for (int d = 0; d < runtime->count; d++) {
        struct capabilities *can = &runtime->devices[d].can;
        if (can->class != DEVICE_CPU || can->vector_width != 16) continue;
        for (enum compute_type compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++)
            can->bf16[compute] = (struct bf16_ability) { .form = BF16_TILES };
    }
    return NULL;
}
#else
const char *tiles_use(tutti_runtime *runtime)
{
    (void)runtime;
    return "the processor is not an x86-64";
}
#endif
