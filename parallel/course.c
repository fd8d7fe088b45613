#include "parallel/course.h"

#include "parallel/ranks.h"
#include "parallel/state.h"

bool trainer_is_cancelled(const tutti_trainer *trainer)
{
    return atomic_load(&trainer->course.run) == RUN_CANCELLED;
}

bool trainer_stops(const tutti_trainer *trainer)
{
    return trainer->ranks ? trainer->ranks->cancelled : trainer_is_cancelled(trainer);
}

void trainer_run_begin(tutti_trainer *trainer)
{
    int ended = RUN_ENDED;
    if (trainer->course.depth++ == 0) (void)atomic_compare_exchange_strong(&trainer->course.run, &ended, RUN_OPEN);
}

void trainer_run_end(tutti_trainer *trainer)
{
    if (--trainer->course.depth > 0) return; /* a run around it is cancelled, too */
    if (trainer->ranks) trainer->ranks->cancelled = false;
    atomic_store(&trainer->course.run, RUN_ENDED);
}

float trainer_learning_rate(const tutti_trainer *trainer)
{
    return trainer->course.scheduled ? trainer->course.rate : trainer->optimizer.learning_rate;
}
