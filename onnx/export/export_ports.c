/* Inputs and outputs of a file that is written. */
#include "onnx/export/export.h"

static enum onnx_type port_type(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_DTYPE_F16: return ONNX_FLOAT16;
    case TUTTI_DTYPE_BF16: return ONNX_BFLOAT16;
    case TUTTI_DTYPE_I32:
    case TUTTI_DTYPE_I64: return ONNX_INT32;
    case TUTTI_DTYPE_U8: return ONNX_UINT8;
    case TUTTI_DTYPE_BOOL: return ONNX_BOOL;
    default: return ONNX_FLOAT;
    }
}

static Onnx__TensorShapeProto__Dimension *new_dimension(struct export *export, int64_t size, const char *symbol)
{
    Onnx__TensorShapeProto__Dimension *dimension = export_new(export, 1, sizeof *dimension);
    if (!dimension) return NULL;
    onnx__tensor_shape_proto__dimension__init(dimension);
    dimension->has_dim_value = !symbol;
    dimension->dim_value = symbol ? 0 : size;
    dimension->dim_param = (char *)symbol;
    return dimension;
}

Onnx__ValueInfoProto *export_port(
    struct export *export, const char *name, enum onnx_type of, const tutti_shape *sample, bool for_each_sample)
{
    Onnx__ValueInfoProto *port = export_new(export, 1, sizeof *port);
    Onnx__TypeProto *type = export_new(export, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = export_new(export, 1, sizeof *tensor);
    Onnx__TensorShapeProto *shape = export_new(export, 1, sizeof *shape);
    Onnx__TensorShapeProto__Dimension **sizes = export_new(export, TUTTI_MAX_RANK + 1, sizeof *sizes);
    if (!port || !type || !tensor || !shape || !sizes) return &export->no_port;
    onnx__value_info_proto__init(port);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    if (for_each_sample) sizes[shape->n_dim++] = new_dimension(export, 0, "N");
    for (int i = 0; i < sample->rank; i++) {
        const int64_t size = sample->sizes[i];
        sizes[shape->n_dim++] = new_dimension(export, size, size == TUTTI_SEQUENCE ? "T" : NULL);
    }
    shape->dim = sizes;
    tensor->has_elem_type = true;
    tensor->elem_type = of;
    tensor->shape = shape;
    type->tensor_type = tensor;
    port->name = (char *)name;
    port->type = type;
    return port;
}

void export_add_port(struct export *export, struct export_list *list, const char *name, const tutti_tensor_info *info)
{
    (void)export_add(
        export, list, export_port(export, name, port_type(info->dtype), &info->shape, info->for_each_sample));
}
