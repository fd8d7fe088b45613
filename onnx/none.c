/* A build without protobuf-c. */
#include "base/options.h"
#include "tutti_onnx.h"

static const char install[] = "install libprotobuf-c-dev and protobuf-c-compiler, and build again";

tutti_status tutti_import_onnx(
    tutti_runtime *runtime, const char *path, const tutti_onnx_options *options, tutti_onnx *made)
{
    (void)runtime, (void)options;
    const tutti_status status = RESULT_WRITE(made, &(tutti_onnx) { 0 }, tutti_onnx);
    if (status != TUTTI_OK) return status;
    return fail(TUTTI_UNSUPPORTED, "%s: this build reads no ONNX files: %s", path, install);
}

tutti_status tutti_export_onnx(
    const tutti_network *network, tutti_trainer *trainer, const char *path, const tutti_onnx_export_options *options)
{
    (void)network, (void)trainer, (void)options;
    return fail(TUTTI_UNSUPPORTED, "%s: this build writes no ONNX files: %s", path, install);
}

char *tutti_onnx_metadata(const char *path, const char *key)
{
    (void)key;
    fail(TUTTI_UNSUPPORTED, "%s: this build reads no ONNX files: %s", path, install);
    return NULL;
}
