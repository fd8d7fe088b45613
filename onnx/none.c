/* A build without protobuf-c. */
#include "base/options.h"
#include "tutti_onnx.h"

tutti_status tutti_import_onnx(
    tutti_runtime *runtime, const char *path, const tutti_onnx_options *options, tutti_onnx *made)
{
    (void)runtime, (void)options;
    const tutti_status status = RESULT_WRITE(made, &(tutti_onnx) { 0 }, tutti_onnx);
    if (status != TUTTI_OK) return status;
    return fail(TUTTI_UNSUPPORTED,
        "%s: this build reads no ONNX files: install libprotobuf-c-dev and protobuf-c-compiler, and build again", path);
}
