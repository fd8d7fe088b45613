/* The state dict of the module that a file was exported from, as PyTorch's newer exporter writes it into the file: all
 * names, also of tensors that the file does not have any more, in the order in which the module registered them. */
#ifndef ONNX_SIGNATURE_H
#define ONNX_SIGNATURE_H

#include "onnx/import.h"

struct signature_entry {
    char *name;
    size_t position;          /* in the state dict: parameters, then buffers */
    bool parameter;           /* not a buffer or a constant */
    bool present;             /* an initialiser has this name, or was computed from tensors of this name */
    struct onnx_value *value; /* the value made for it, if the exporter merged it with another one; else NULL */
};

struct signature {
    struct signature_entry *entries; /* by name */
    size_t count;
};

/* Reads the state dict's names, and marks those that are present; a file without a signature has none. Sets origin.kind
 * and origin.folded_from of initialisers, also without a signature. Fails only for lack of memory. */
tutti_status signature_read(struct import *import, struct signature *signature);
/* The names alone, before those of the file are read. */
tutti_status signature_read_names(const Onnx__GraphProto *graph, struct signature *signature);
/* The list of the names that the exporter computed an initialiser from. NULL: the file does not say it. */
const char *signature_folded_from(const Onnx__GraphProto *graph, const char *name);
/* Sets origin.state_name of initialisers. */
void signature_find_state_names(struct import *import, const struct signature *signature);
void signature_free(struct signature *signature);
struct signature_entry *signature_find(const struct signature *signature, const char *name); /* NULL: none */
/* The position of the first entry of a layer ("" is the whole module); the others follow it. */
size_t signature_layer(const struct signature *signature, const char *layer);
/* Whether a name belongs to a layer: "a.b.weight" belongs to "a.b" and "a". All belong to "". */
bool signature_is_of(const char *name, const char *layer);

#endif
