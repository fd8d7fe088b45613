/* libjpeg-turbo, loaded with the first JPEG file, or linked. */
#ifndef FORMATS_JPEG_LIBRARY_H
#define FORMATS_JPEG_LIBRARY_H

#include "base/loaded.h"

#include <stdio.h>

#include <jpeglib.h>

#ifdef TUTTI_LOADS_JPEG
/* The version of the interface. */
#if JPEG_LIB_VERSION >= 80
#define JPEG_FILE "libjpeg.so.8"
#elif JPEG_LIB_VERSION >= 70
#define JPEG_FILE "libjpeg.so.7"
#else
#define JPEG_FILE "libjpeg.so.62"
#endif
#define JPEG_FUNCTIONS(X)      \
    X(jpeg_CreateDecompress)   \
    X(jpeg_destroy_decompress) \
    X(jpeg_finish_decompress)  \
    X(jpeg_mem_src)            \
    X(jpeg_read_header)        \
    X(jpeg_read_scanlines)     \
    X(jpeg_save_markers)       \
    X(jpeg_start_decompress)   \
    X(jpeg_std_error)
LOADED_TABLE(jpeg, JPEG_FUNCTIONS)
#define jpeg_CreateDecompress jpeg_functions.jpeg_CreateDecompress
#define jpeg_destroy_decompress jpeg_functions.jpeg_destroy_decompress
#define jpeg_finish_decompress jpeg_functions.jpeg_finish_decompress
#define jpeg_mem_src jpeg_functions.jpeg_mem_src
#define jpeg_read_header jpeg_functions.jpeg_read_header
#define jpeg_read_scanlines jpeg_functions.jpeg_read_scanlines
#define jpeg_save_markers jpeg_functions.jpeg_save_markers
#define jpeg_start_decompress jpeg_functions.jpeg_start_decompress
#define jpeg_std_error jpeg_functions.jpeg_std_error

static struct loaded_library jpeg_library = {
    .file = JPEG_FILE, .package = "libjpeg62-turbo", .purpose = "reading JPEG files", LOADED_ENTRIES(jpeg)
};
#else
static struct loaded_library jpeg_library; /* linked */
#endif

#endif
