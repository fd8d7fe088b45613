/* Arguments of convolutions for CPU-class devices that have several groups (struct conv2d_groups in conv2d_cpu.h). */
#define CONV2D_GROUPS_ARGUMENTS(X) \
    X##_INT(group_sources) X##_INT(group_results) X##_INT(all_source_blocks) X##_INT(all_result_blocks)
