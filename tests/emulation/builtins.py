"""Writes a small copy of POCL's library of built-in functions: builtins.py SOURCE FOLDER.

POCL reads the 24,000 functions of it, half a second, in each process that builds a kernel. The copy in FOLDER has those whose
name is a word of a text that tests build, and what they call; builtins.c opens it in place of the library. Where POCL
is not of the release of which is known what else it looks for, there is no copy, and POCL reads its own."""
import ctypes
import pathlib
import re
import sys

RELEASE = "/libpocl.so.2.10."  # POCL 3.1
FOLDERS = ("clkernels", "layers", "plan", "runtime", "tests")
LIBRARIES = ("libclblast.so.1", "libclFFT.so.2")  # have texts of their own
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
UNUSED = re.compile(r"Dv\d+_[dlma]")  # vectors of double, long and signed char are in no text
CONVERSION = re.compile(r"convert_(float|half|u?int|u?short|uchar)\d*")  # macros paste their names together
POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int
# Functions of LLVM's C interface that do not take one pointer and return another.
INTERFACE = {"CreateMemoryBufferWithContentsOfFile": (INTEGER, ctypes.c_char_p, POINTER, POINTER),
             "ParseBitcodeInContext2": (INTEGER, POINTER, POINTER, POINTER), "GetValueName2": (ctypes.c_char_p, POINTER, POINTER),
             "GetNumOperands": (INTEGER, POINTER), "GetOperand": (POINTER, POINTER, ctypes.c_uint),
             "ReplaceAllUsesWith": (None, POINTER, POINTER), "DeleteFunction": (None, POINTER),
             "WriteBitcodeToFile": (INTEGER, POINTER, ctypes.c_char_p)}


class Llvm:
    """The LLVM that POCL brings along."""
    def __init__(self):
        self.loaded = ctypes.CDLL("libpocl.so.2", mode=ctypes.RTLD_GLOBAL)
        if RELEASE not in pathlib.Path("/proc/self/maps").read_text(): raise OSError("POCL is of another release")

    def __getattr__(self, name):
        function = getattr(self.loaded, "LLVM" + name)
        function.restype, *function.argtypes = INTERFACE.get(name, (POINTER, POINTER))
        setattr(self, name, function)
        return function

    def read(self, path):
        context = self.GetGlobalContext(None)
        buffer, module, message = POINTER(), POINTER(), POINTER()
        if (self.CreateMemoryBufferWithContentsOfFile(str(path).encode(), ctypes.byref(buffer), ctypes.byref(message)) or
                self.ParseBitcodeInContext2(context, buffer, ctypes.byref(module))):
            raise OSError(f"{path} cannot be read")
        return module

    def each(self, kind, of):
        one = getattr(self, "GetFirst" + kind)(of)
        while one:
            yield one
            one = getattr(self, "GetNext" + kind)(one)

    def name(self, function):
        return self.GetValueName2(function, ctypes.byref(ctypes.c_size_t())).decode()

    def operands(self, function):
        for block in self.each("BasicBlock", function):
            for instruction in self.each("Instruction", block):
                for i in range(self.GetNumOperands(instruction)):
                    yield self.GetOperand(instruction, i)


def words(source):
    files = [path for folder in FOLDERS for path in (source / folder).rglob("*") if path.suffix in (".c", ".cl", ".h")]
    files += [path for name in LIBRARIES for path in pathlib.Path("/usr/lib").glob(f"*/{name}")]
    return {word.decode() for path in files for word in WORD.findall(path.read_bytes())}


def is_wanted(name, known):
    """Of a mangled name, whether a text may call it; of others, whether POCL looks for it."""
    mangled = re.match(r"_Z(\d+)", name)
    if not mangled: return "pocl" in name or name == "printf"
    name = name[mangled.end():]
    base, arguments = name[:int(mangled[1])], name[int(mangled[1]):]
    base = base.removeprefix("_cl_")
    return (base in known or base.rstrip("0123456789") in known or CONVERSION.fullmatch(base)) and not UNUSED.search(arguments)


def reduce(llvm, path, known, output):
    module = llvm.read(path)
    functions = {function: llvm.name(function) for function in llvm.each("Function", module)}
    kept = {function for function, name in functions.items() if is_wanted(name, known)}
    left = list(kept)
    while left:
        called = {operand for operand in llvm.operands(left.pop()) if operand in functions and operand not in kept}
        kept |= called
        left += called
    for function, name in functions.items():
        if function in kept or name.startswith("llvm."): continue
        llvm.ReplaceAllUsesWith(function, llvm.GetUndef(llvm.TypeOf(function)))
        llvm.DeleteFunction(function)
    print(f"{len(kept)} of {len(functions)} functions of {path.name}")
    return llvm.WriteBitcodeToFile(module, str(output).encode()) == 0


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    kind = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "none"
    for old in folder.glob("kernel-*.bc"): old.unlink()
    try:
        llvm = Llvm()
        libraries = [path for path in pathlib.Path("/usr/share/pocl").glob(f"kernel-*-{kind}.bc")]
        for path in libraries: reduce(llvm, path, words(source), folder / path.name)
    except (OSError, AttributeError) as problem:
        print(f"POCL's own library is read: {problem}")


main()
