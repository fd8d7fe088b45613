/* Arguments that follow the others in convolutions for CPU-class devices: where they give statistics, where they go
 * after a gate, and where they normalise what they load. */
#define STATISTICS_ARGUMENTS(X) X##_BUFFER(global float *, statistics)
#define GATE_ARGUMENTS(X)                                                                                              \
    X##_BUFFER(const global in2_t *, x) X##_BUFFER(const global float *, gamma) X##_BUFFER(const global float *, beta) \
        X##_BUFFER(const global float *, mean) X##_BUFFER(const global float *, rstd)                                  \
            X##_BUFFER(const global in7_t *, output) X##_INT(channels) X##_BUFFER(global float *, statistics)
#define NORMALISE_ARGUMENTS(X)                                                     \
    X##_BUFFER(const global float *, gamma) X##_BUFFER(const global float *, beta) \
        X##_BUFFER(const global float *, mean) X##_BUFFER(const global float *, rstd) X##_INT(channels)
