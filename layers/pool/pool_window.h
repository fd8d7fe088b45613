/* Windows of pooling, from the sizes that are build options (see pool_plain.cl). Pixels inside the image only. */
#ifndef ADAPTIVE
#define ADAPTIVE 0
#endif
#ifndef COUNT
#define COUNT 0
#endif
#ifndef WITH_INDEX
#define WITH_INDEX 0
#endif
#ifndef INDEX
#define INDEX uchar
#endif

/* The first place of a window that lies inside the image: where the maximum is if every pixel is -infinity. */
#define FIRST_INSIDE(oy, ox) (max(PH - (oy)*SH, 0) * KW + max(PW - (ox)*SW, 0))
/* The windows (positions of y) that cover pixel i, in one direction; none where the last is before the first. */
#define FIRST_WINDOW(i, P, K, S) max(0, ((i) + P - K + S) / S)
#define LAST_WINDOW(i, P, S, O) min(O - 1, ((i) + P) / S)

/* Average pooling, adaptive or not: pixels BEGIN .. END-1 of window o, and the windows FIRST .. LAST that cover pixel
 * i. */
#if ADAPTIVE
#define BEGIN_Y(o) ((int)((long)(o)*H / OH))
#define BEGIN_X(o) ((int)((long)(o)*W / OW))
#define END_Y(o) ((int)((((long)(o) + 1) * H + OH - 1) / OH))
#define END_X(o) ((int)((((long)(o) + 1) * W + OW - 1) / OW))
#define FIRST_Y(i) ((int)((long)(i)*OH / H))
#define FIRST_X(i) ((int)((long)(i)*OW / W))
#define LAST_Y(i) ((int)((((long)(i) + 1) * OH + H - 1) / H) - 1)
#define LAST_X(i) ((int)((((long)(i) + 1) * OW + W - 1) / W) - 1)
#else
#define BEGIN_Y(o) max((o)*SH - PH, 0)
#define BEGIN_X(o) max((o)*SW - PW, 0)
#define END_Y(o) min((o)*SH - PH + KH, H)
#define END_X(o) min((o)*SW - PW + KW, W)
#define FIRST_Y(i) FIRST_WINDOW(i, PH, KH, SH)
#define FIRST_X(i) FIRST_WINDOW(i, PW, KW, SW)
#define LAST_Y(i) LAST_WINDOW(i, PH, SH, OH)
#define LAST_X(i) LAST_WINDOW(i, PW, SW, OW)
#endif
/* What a window's sum is divided by: its pixels in the image, or in the image with its padding. */
#if ADAPTIVE || COUNT
#define DIVISOR(oy, ox) ((END_Y(oy) - BEGIN_Y(oy)) * (END_X(ox) - BEGIN_X(ox)))
#elif PH == 0 && PW == 0 && (OH - 1) * SH + KH <= H && (OW - 1) * SW + KW <= W
#define DIVISOR(oy, ox) (KH * KW)
#else
#define DIVISOR(oy, ox) ((min((oy)*SH + KH, H + 2 * PH) - (oy)*SH) * (min((ox)*SW + KW, W + 2 * PW) - (ox)*SW))
#endif
