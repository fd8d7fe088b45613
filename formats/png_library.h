/* libpng, loaded with the first PNG file, or linked. */
#ifndef FORMATS_PNG_LIBRARY_H
#define FORMATS_PNG_LIBRARY_H

#include "base/loaded.h"

#include <png.h>

#ifdef TUTTI_LOADS_PNG
#define PNG_TEXT_OF(number) #number
#define PNG_FILE(number) "libpng" PNG_TEXT_OF(number) ".so." PNG_TEXT_OF(number)
#define PNG_FUNCTIONS(X)              \
    X(png_create_info_struct)         \
    X(png_create_read_struct)         \
    X(png_destroy_read_struct)        \
    X(png_error)                      \
    X(png_get_bit_depth)              \
    X(png_get_channels)               \
    X(png_get_color_type)             \
    X(png_get_error_ptr)              \
    X(png_get_image_height)           \
    X(png_get_image_width)            \
    X(png_get_io_ptr)                 \
    X(png_get_rowbytes)               \
    X(png_read_end)                   \
    X(png_read_info)                  \
    X(png_read_row)                   \
    X(png_read_update_info)           \
    X(png_set_expand)                 \
    X(png_set_interlace_handling)     \
    X(png_set_keep_unknown_chunks)    \
    X(png_set_packing)                \
    X(png_set_read_fn)                \
    X(png_set_read_user_transform_fn) \
    X(png_set_scale_16)               \
    X(png_set_user_transform_info)
LOADED_TABLE(png, PNG_FUNCTIONS)
#define png_create_info_struct png_functions.png_create_info_struct
#define png_create_read_struct png_functions.png_create_read_struct
#define png_destroy_read_struct png_functions.png_destroy_read_struct
#define png_error png_functions.png_error
#define png_get_bit_depth png_functions.png_get_bit_depth
#define png_get_channels png_functions.png_get_channels
#define png_get_color_type png_functions.png_get_color_type
#define png_get_error_ptr png_functions.png_get_error_ptr
#define png_get_image_height png_functions.png_get_image_height
#define png_get_image_width png_functions.png_get_image_width
#define png_get_io_ptr png_functions.png_get_io_ptr
#define png_get_rowbytes png_functions.png_get_rowbytes
#define png_read_end png_functions.png_read_end
#define png_read_info png_functions.png_read_info
#define png_read_row png_functions.png_read_row
#define png_read_update_info png_functions.png_read_update_info
#define png_set_expand png_functions.png_set_expand
#define png_set_interlace_handling png_functions.png_set_interlace_handling
#define png_set_keep_unknown_chunks png_functions.png_set_keep_unknown_chunks
#define png_set_packing png_functions.png_set_packing
#define png_set_read_fn png_functions.png_set_read_fn
#define png_set_read_user_transform_fn png_functions.png_set_read_user_transform_fn
#define png_set_scale_16 png_functions.png_set_scale_16
#define png_set_user_transform_info png_functions.png_set_user_transform_info

static struct loaded_library png_library = { .file = PNG_FILE(PNG_LIBPNG_VER_SONUM),
    .package = "libpng16-16",
    .purpose = "reading PNG files",
    LOADED_ENTRIES(png) };
#else
static struct loaded_library png_library; /* linked */
#endif

#endif
