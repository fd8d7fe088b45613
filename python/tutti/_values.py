"""Single values as C's, and what messages say about values that do not fit."""
import difflib
import operator

import numpy

FLOATS = {"float", "double"}
BITS = {"int": 32, "int32_t": 32, "int64_t": 64, "uint64_t": 64, "size_t": 64}


def shown(value):
    """A value in a message: short, on one line."""
    if isinstance(value, type) or callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if not isinstance(value, (int, float, complex, str, bytes, numpy.generic, type(None))):
        word = type(value).__name__
        return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}".replace("a ndarray", "an array")
    text = f"{value}" if isinstance(value, numpy.generic) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def whole(name, value, least=None):
    """A whole number, of Python or numpy."""
    try:
        if isinstance(value, (bool, numpy.bool_)):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: it must be a whole number") from None
    if least is not None and found < least:
        raise ValueError(f"{name} is {found}: it must be at least {least}")
    return found


def number(name, kind, value):
    """A number of a type of C."""
    if kind in FLOATS:
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{name} is {shown(value)}: it must be a number") from None
    if kind in ("bool", "_Bool"):
        if not isinstance(value, (bool, numpy.bool_, int, numpy.integer)) or value not in (0, 1):
            raise TypeError(f"{name} is {shown(value)}: it must be True or False")
        return bool(value)
    found, bits, signed = whole(name, int(value) if isinstance(value, (bool, numpy.bool_)) else value), BITS[kind], kind[0] not in "us"
    least, most = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    if not least <= found <= most:
        raise OverflowError(f"{name} is {shown(found)}: it must be from {least} to {most}")
    return found


def near(name, names):
    """What to add to a message about a name that is not one of these."""
    found = difflib.get_close_matches(str(name), names, 3) or [one for one in names if str(name) and str(name) in one][:3]
    if found:
        return ": did you mean " + " or ".join(map(repr, found)) + "?"
    return ": there are " + ", ".join([*names][:12]) + (", ..." if len(names) > 12 else "") if names else ": there is none"
