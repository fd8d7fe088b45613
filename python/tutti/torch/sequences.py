"""Embeddings and attention."""
import math

import torch

from .. import layers
from .movement import detached
from .values import Refused, Value, shape_of


# ------------------------------------------------------------------------------------------------------ embedding ----

def embedding(walk, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq or weight.axis is not None:
        raise Refused("gradients that are scaled by frequency, or a table that differs from sample to sample")
    rows = weight.shape.sizes[0]
    padding = padding_idx if padding_idx >= 0 else None
    tensor = rows_of(walk, weight, indices, rows, padding)
    return walk.result(tensor, [weight, indices], outer=indices.outer)


def rows_of(walk, weight, indices, rows, padding):
    """Rows of a table. A number outside of the table gives zeros without a gradient, as the row of padding is at first."""
    ids = indices.tensor
    if padding is None:
        if indices.varies and ids.dtype == "int32":
            return walk.op("embedding", ids, weight.floats)
        return walk.op("gather", weight.floats, ids, axis=0)
    parameter = next((one for one in walk.tied.values() if one.found is weight), None)
    stays_zero = parameter is not None and parameter.uses == 1 and not parameter.values[padding].any()
    ids = indices.floats
    is_padding = walk.op("equal", ids, float(padding))
    made = walk.op("gather", weight.floats, walk.op("where", is_padding, float(rows), ids), axis=0)
    if stays_zero:
        return made
    row = Value(walk, shape_of((weight.shape.sizes[1],), walk.symbol), torch.float32,
                walk.reshaped(walk.op("slice", weight.floats, axes=0, starts=padding, ends=padding + 1), (weight.shape.sizes[1],)), trains=True)
    return walk.op("where", walk.reshaped(is_padding, (*is_padding.shape, 1)), detached(walk, row).tensor, made)


def embedding_bag(walk, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    raise Refused("bags with offsets join samples: use torch.nn.Embedding and a mean")


# ------------------------------------------------------------------------------------------------------ attention ----

def attention(walk, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    given = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    structure = (query.axis, query.outer, query.rows)
    if query.axis is None or any((one.axis, one.outer, one.rows) != structure for one in (key, value)):
        raise Refused("the batch is at different axes of its inputs")
    if query.axis >= query.shape.rank - 2:
        raise Refused("the batch is one of the axes of its matrices")
    scale = 1 / math.sqrt(query.shape.sizes[-1]) if scale is None else scale
    tensors = [walk.spread(one) for one in (query, key, value)]
    mask = mask_of(walk, query, attn_mask) if attn_mask is not None else None
    leading = [tuple(tensor.shape)[:-2] for tensor in tensors]
    heads = [math.prod(sizes) for sizes in leading]
    if attn_mask is not None and len(leading[0]) != 1:
        if heads[0] != heads[1] or enable_gqa:
            raise Refused("a mask of grouped heads")
        tensor = by_products(walk, tensors, mask, attn_mask, dropout_p, scale)
        return walk.result(tensor, given, outer=query.outer)
    if heads[0] != heads[1] and not enable_gqa:
        raise Refused("different heads of queries and keys")
    tensors = [walk.reshaped(tensor, (count, *tuple(tensor.shape)[-2:])) for tensor, count in zip(tensors, heads)]
    more = {"mask": mask, "mask_is_boolean": attn_mask.dtype == torch.bool} if mask is not None else {}
    tensor = layers.attention(*tensors, causal=bool(is_causal), scale=scale, dropout=dropout_p, **more)
    return walk.result(walk.reshaped(tensor, (*leading[0], *tuple(tensor.shape)[-2:])), given, outer=query.outer)


def mask_of(walk, query, mask):
    """The mask for the scores of a sample."""
    if mask.axis is not None:
        if mask.axis != query.axis - (query.shape.rank - mask.shape.rank) or (mask.outer, mask.rows) != (query.outer, query.rows):
            raise Refused("the batch is at another axis of the mask")
        return mask.floats
    at = mask.shape.rank - (query.shape.rank - query.axis)
    if at < 0:
        return mask.floats
    if mask.shape.sizes[at] != 1:
        raise Refused("a mask that is the same for all samples has the batch's size")
    return walk.reshaped(mask.floats, (*mask.shape.sizes[:at], *[1] * len(query.split), *mask.shape.sizes[at + 1:]))


def by_products(walk, tensors, mask, attn_mask, dropout_p, scale):
    q, k, v = tensors
    scores = walk.op("matmul", walk.op("scale", q, factor=scale), k, transpose_b=1)
    masked = attn_mask.dtype == torch.bool
    scores = walk.op("where", mask, scores, float("-inf")) if masked else walk.op("add", scores, mask)
    weights = walk.op("softmax", scores)
    weights = walk.op("dropout", weights, ratio=dropout_p) if dropout_p else weights
    return walk.op("matmul", weights, v)


OPERATORS = {
    "embedding": embedding, "embedding_bag": embedding_bag, "_embedding_bag": embedding_bag, "scaled_dot_product_attention": attention,
}
