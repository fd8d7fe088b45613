/* Schemas of products of matrices, and of what is computed by them. */
#include "layers/layers.h"
#include "layers/schema/schema.h"

#define FLAG(name, where, text) ROW(FLAG, name, where, "0", text)

static const struct op_schema schemas[] = {
    { "dense", "x W^T + b over the last axis",
        INPUTS({ "x", "[..., features]" }, { "weight", "[units, features]" }, { "bias", "[units]", true }),
        .operation = &operation_dense },
    { "matmul",
        "a b for each index of the leading axes; these, the batch included, are broadcast; a vector is a row as a, "
        "a column as b",
        INPUTS({ "a", "[..., m, k]" }, { "b", "[..., k, n]" }),
        OP_ATTRIBUTES(FLAG("transpose_a", ATTRIBUTE_OF(matmul, transpose_a), "1: a is [..., k, m]"),
            FLAG("transpose_b", ATTRIBUTE_OF(matmul, transpose_b), "1: b is [..., n, k]")),
        &operation_matmul, .decompose = decompose_matmul },
    { "rotary_embedding", "pairs of the last axis of x, turned by angles",
        INPUTS({ "x", "[heads, length, width], or with `heads` [length, heads width]" },
            { "cos", "[length, width / 2], or with ids a table" }, { "sin", "as cos" },
            { "ids", "[length] of int32: rows of the tables, negative ones from the end", true }),
        OP_ATTRIBUTES(
            { "heads", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(rotary, heads), "0", "0: heads are an axis of x" },
            { "width", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(rotary, width), "0",
                "of the part that is turned; 0: all" },
            FLAG("interleaved", ATTRIBUTE_OF(rotary, interleaved), "1: pairs are neighbours, else halves")),
        .decompose = decompose_rotary_embedding, .decomposed = &rotary_attributes_type },
    { "dft", "the discrete Fourier transform along an axis, as ONNX's DFT; the inverse one divides by the length",
        INPUTS({ "x", "[..., 1] of real or [..., 2] of complex numbers" }),
        OP_ATTRIBUTES({ "axis", TUTTI_ATTRIBUTE_AXIS, OPTION_OF(dft, axis), "-2", "along it" },
            FLAG("inverse", OPTION_OF(dft, inverse), "1: the inverse transform"),
            FLAG("onesided", OPTION_OF(dft, onesided),
                "1: the first half of the spectrum of real numbers; with inverse, real numbers of such a half"),
            { "length", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(dft, length), "0",
                "x is padded or cut to it; 0: the axis's, or 2 (size - 1) with onesided and inverse" }),
        .build = op_dft },
    { "spectral_product", "the channels of each frequency times a complex matrix of its own",
        INPUTS({ "x", "[channels, ..., 2]: spectra" }, { "weights", "[channels, units, ..., 2]" }),
        .operation = &operation_spectral_product },
    { 0 },
};

const struct op_group schema_products = { "Products, attention and Fourier transforms", schemas };
