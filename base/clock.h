/* Clocks, for limits of time and for measurements. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* Seconds of a monotonic clock. */
double clock_seconds(void);
/* Seconds that processors have spent on this process, of all its threads together. */
double processor_seconds(void);

#endif
