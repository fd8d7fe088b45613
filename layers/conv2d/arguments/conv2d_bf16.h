/* Arguments of conv2d_bf16_pack_cpu.cl. */
#define CONV2D_BF16_PACK_ARGUMENTS(X)                                                                           \
    X##_FIRST(const global float *, w) X##_BUFFER(const global float *, bias) X##_BUFFER(global uint *, packed) \
        X##_INT(sources) X##_INT(results) X##_INT(steps) X##_INT(panels) X##_INT(panels_group)
/* Arguments of conv2d_bf16_cpu.cl. */
#define CONV2D_BF16_ARGUMENTS(X)                                                                                   \
    X##_FIRST(const global in0_t *, source) X##_BUFFER(const global uint *, packed)                                \
        X##_BUFFER(const global add_t *, add) X##_BUFFER(global out0_t *, result) X##_INT(source_blocks)           \
            X##_INT(source_height) X##_INT(source_width) X##_INT(result_blocks) X##_INT(result_height)             \
                X##_INT(result_width) X##_INT(grid_height) X##_INT(grid_width) X##_INT(per_image) X##_INT(band)    \
                    X##_INT(grid_rows) X##_INT(pitch) X##_INT(positions) X##_INT(start_h) X##_INT(start_w)         \
                        X##_INT(units_all) X##_INT(units_max) X##_INT(steps) X##_INT(panels) X##_INT(panels_group) \
                            X##_INT(panels_max) X##_SCRATCH(SCRATCH float *, scratch) X##_LONG(scratch_floats)
/* Arguments of conv2d_bf16_weight_gradient_cpu.cl. */
#define CONV2D_BF16_WEIGHTS_ARGUMENTS(X)                                                                            \
    X##_FIRST(const global in0_t *, x) X##_BUFFER(const global in1_t *, dy) X##_BUFFER(global float *, workspace)   \
        X##_LONG(offset) X##_INT(CB) X##_INT(KB) X##_INT(c_blocks_group) X##_INT(k_blocks_group) X##_INT(height)    \
            X##_INT(width) X##_INT(grid_height) X##_INT(grid_width) X##_INT(per_image) X##_INT(band)                \
                X##_INT(grid_rows) X##_INT(pitch) X##_INT(positions) X##_INT(row) X##_INT(start_h) X##_INT(start_w) \
                    X##_INT(units_all) X##_INT(units_max) X##_INT(units_split) X##_INT(c_blocks_max)                \
                        X##_INT(k_blocks_max) X##_INT(part_rows) X##_INT(part_blocks) X##_INT(c_tasks)              \
                            X##_INT(k_tasks) X##_INT(splits) X##_SCRATCH(SCRATCH float *, scratch)                  \
                                X##_LONG(scratch_floats)
/* Arguments of conv2d_bf16_image_weight_gradient_cpu.cl. */
#define CONV2D_BF16_IMAGE_WEIGHTS_ARGUMENTS(X)                                                                     \
    X##_FIRST(const global float *, x) X##_BUFFER(const global in1_t *, dy) X##_BUFFER(global float *, workspace)  \
        X##_LONG(offset) X##_INT(KB) X##_INT(height) X##_INT(width) X##_INT(result_height) X##_INT(result_width)   \
            X##_INT(padding_h) X##_INT(padding_w) X##_INT(line) X##_INT(positions) X##_INT(rows_max)               \
                X##_INT(chunks_image) X##_INT(chunks) X##_INT(chunks_split) X##_INT(k_blocks_max) X##_INT(k_tasks) \
                    X##_INT(splits) X##_SCRATCH(SCRATCH float *, scratch) X##_LONG(scratch_floats)
