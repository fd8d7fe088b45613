/* Schemas of elementwise operations, from the tables of layers/pointwise.h. */
#include "layers/schema/schema.h"

#define INPUTS_1 INPUTS({ "a" })
#define INPUTS_2 INPUTS({ "a" }, { "b" })
#define INPUTS_3 INPUTS({ "a" }, { "b" }, { "c" })

#define NONE NULL
/* ONNX's operator: of elements; since an opset above the least one that is written; whose result is bool there; whose
 * inputs are, too; whose result can leave the integer type of the inputs. */
#define IN_ONNX(...) (&(const struct op_onnx) { __VA_ARGS__ })
#define ONNX(name) IN_ONNX(#name, .form = TUTTI_ONNX_ELEMENTWISE)
#define SINCE(name, opset) IN_ONNX(#name, opset, TUTTI_ONNX_ELEMENTWISE)
#define COMPARISON(name) IN_ONNX(#name, .form = TUTTI_ONNX_COMPARISON)
#define LOGIC(name) IN_ONNX(#name, .form = TUTTI_ONNX_LOGIC)
#define OVERFLOWING(name) IN_ONNX(#name, .form = TUTTI_ONNX_ELEMENTWISE, .overflows = true)
#define NUMBER(name, of, member, value, text) ROW(NUMBER, #name, ATTRIBUTE_OF(of, member), value, text, .onnx = #name)
#define LOW_OF(of, member, name, value, text) OP_ATTRIBUTES(NUMBER(name, of, member, value, text))

/* In the order of enum activation. */
#define POSITION(name, ...) POSITION_##name,
enum { POSITION_NONE, ACTIVATION_TABLE(POSITION) };

/* clang-format off */
static const struct op_schema schemas[] = {
#define LOW(name, value, text) LOW_OF(pointwise, low, name, value, text)
#define SCHEMA(name_, onnx_, inputs_, text_, attributes_, ...)                                                                \
    { .name = #name_, .text = text_, .inputs = INPUTS_##inputs_, .attributes = attributes_, .onnx = onnx_,             \
      .operation = &operation_##name_ },
    POINTWISE_TABLE(SCHEMA)
#undef LOW
#undef SCHEMA
#define LOW(name, value, text) LOW_OF(activation, function.low, name, value, text)
#define LOW_HIGH(least, of_least, most, of_most)                                                                       \
    OP_ATTRIBUTES(NUMBER(least, activation, function.low, of_least, "the least result"),                                   \
        NUMBER(most, activation, function.high, of_most, "the largest result"))
#define SCHEMA(name_, onnx_, inputs_, text_, attributes_, ...)                                                                \
    { .name = #name_, .text = text_, .inputs = INPUTS_##inputs_, .attributes = attributes_, .onnx = onnx_,             \
      .operation = &operation_activation, .activation = (enum activation)POSITION_##name_ },
    ACTIVATION_TABLE(SCHEMA)
    { 0 },
};
/* clang-format on */

const struct op_group schema_elementwise = { "Elementwise", schemas };
