"""What `cosolve.jit` stands on in numba and llvmlite and neither of them documents, one fact per test.

After an upgrade a failure belongs here and nowhere else: mend `src/cosolve/jit`, then raise the bounds in
`pyproject.toml`. Each test says what depends on its fact.
"""

import ctypes
import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.core import caching, cgutils
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import intrinsic
from numba.np.arrayobj import load_item, make_array, populate_array, store_item

from cosolve import jit
from cosolve.jit.cache import Locator

BINARY = types.int64(types.int64, types.int64)


def compiled(function, signature, **options):
    """One jitted version, and what numba keeps of it."""
    dispatcher = numba.njit(signature, **options)(function)
    (made,) = dispatcher.overloads.values()
    return dispatcher, made


def code(function, signature, **options):
    """LLVM's code of a function after optimisation."""
    dispatcher, _ = compiled(function, signature, **options)
    (text,) = dispatcher.inspect_llvm().values()
    return text


def test_the_installed_version_is_one_that_was_looked_at():
    # everything below: an upper bound stands in pyproject.toml, and this environment keeps it
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (bound,) = [line for line in project["dependencies"] if line.startswith("numba")]
    below = tuple(map(int, bound.rsplit("<", 1)[1].split(".")))
    assert tuple(map(int, version("numba").split(".")[:2])) < below


# -- machine code on disk (cache.py) -------------------------------------------------------------------------------


def test_locators_are_asked_in_the_order_of_a_list():
    # ours is put first, so that it sees this package's functions before numba's own do
    assert isinstance(caching.CacheImpl._locator_classes, list)
    names = [kind.__name__ for kind in caching.CacheImpl._locator_classes]
    assert names[0] == Locator.__name__
    assert "UserProvidedCacheLocator" in names  # NUMBA_CACHE_DIR


def test_a_locator_is_made_from_a_function_and_its_path_and_asked_for_a_stamp(tmp_path, monkeypatch):
    # the fingerprint replaces `get_source_stamp` on the instance
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kind = next(k for k in caching.CacheImpl._locator_classes if k.__name__ == "UserProvidedCacheLocator")
    located = kind.from_function(code, __file__)
    assert located is not None
    assert callable(located.get_source_stamp)
    located.get_source_stamp = lambda: b"ours"
    assert located.get_source_stamp() == b"ours"


def test_the_stamp_is_what_an_index_is_compared_with(tmp_path):
    # an index with another stamp counts as empty
    written = caching.IndexDataCacheFile(str(tmp_path), "name", b"one")
    written.save("key", "data")
    assert caching.IndexDataCacheFile(str(tmp_path), "name", b"one").load("key") == "data"
    assert caching.IndexDataCacheFile(str(tmp_path), "name", b"two").load("key") is None


def test_a_function_without_a_folder_to_keep_it_is_a_runtime_error(monkeypatch):
    # such functions are then kept in memory (decorators.py)
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(lambda x: x)


# -- decorators.py -------------------------------------------------------------------------------------------------


def test_without_nrt_no_references_are_counted():
    # `part`, `bare`, `entry`, `internal`: views cost nothing, neither to compile nor to run
    def first(x):
        return x[1:][0]

    signature = types.float64(types.float64[::1])
    assert "NRT_" not in code(first, signature, _nrt=False)


def test_without_nrt_an_array_cannot_be_made():
    # the same four: numba refuses what they must not do, instead of losing memory
    with pytest.raises(Exception, match=r"(?i)NRT"):
        numba.njit(types.float64(types.int64), _nrt=False)(lambda n: np.empty(n)[0])


def test_without_nrt_an_array_made_elsewhere_cannot_be_returned():
    # the same four: what is returned would have to be counted
    with pytest.raises(numba.core.errors.TypingError, match="Only accept returning of array"):
        numba.njit(types.float64[::1](types.float64[::1]), _nrt=False)(lambda x: x[1:])


def test_functions_without_nrt_and_with_it_call_each_other():
    # equations without references are called from functions that make arrays
    inner = numba.njit(_nrt=False)(lambda x: x[0] + x[1:][0])
    assert numba.njit(lambda n: inner(np.arange(n)))(3) == 1


def test_forceinline_marks_a_function():
    # `part`: short parts of loops vanish in them whatever LLVM thinks of their size
    assert "alwaysinline" in code(lambda a, b: a * b, BINARY, forceinline=True, _nrt=False)
    assert "alwaysinline" not in code(lambda a, b: a * b, BINARY, _nrt=False)


def test_wrappers_can_be_left_out():
    # `internal`: functions that only compiled code calls compile faster
    _, with_all = compiled(lambda a, b: a + b, BINARY)
    _, made = compiled(lambda a, b: a + b, BINARY, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    names = [{f.name for f in m.library.get_defined_functions()} for m in (with_all, made)]
    assert with_all.fndesc.llvm_cpython_wrapper_name in names[0]
    assert with_all.fndesc.llvm_cfunc_wrapper_name in names[0]
    assert not {made.fndesc.llvm_cpython_wrapper_name, made.fndesc.llvm_cfunc_wrapper_name} & names[1]


# -- code for callers (linking.py) ---------------------------------------------------------------------------------


def test_what_is_linked_into_its_callers_has_no_machine_code_of_its_own():
    # `internal`, `part`: numba takes the code of a called function from its library and asks for no more
    inner = jit.internal(lambda x: 2.0 * x)
    between = jit.internal(lambda x: inner(x) + 1.0)
    assert numba.njit(lambda x: between(x) * inner(x))(1.5) == 12.0
    for function in (inner, between):
        (made,) = function.overloads.values()
        assert not made.library.codegen._engine.is_symbol_defined(made.fndesc.llvm_func_name)


def test_a_number_in_a_call_makes_a_version_of_its_own_unless_it_is_forgotten():
    # `internal`: one version for all numbers, because versions differ by the types of arguments alone
    def place(x, k):
        return x[k]

    versions = []
    for function in (numba.njit(place), jit.internal(place)):
        assert numba.njit(lambda x, f=function: f(x, 0) + f(x, 1))(np.array([1.0, 2.0])) == 3.0
        versions.append(len(function.overloads))
    assert versions == [2, 1]


def test_exceptions_of_linked_code_reach_python():
    # `allocating`: what an exception says is in the code that is linked, not with the function that raises it
    def half(n):
        if n % 2:
            raise ValueError("odd")
        return n // 2

    inner = jit.allocating(half)
    outer = numba.njit(lambda n: inner(n))
    assert outer(4) == 2
    with pytest.raises(ValueError, match="odd"):
        outer(3)


# -- calls by address (calls.py) -----------------------------------------------------------------------------------


def test_the_c_entry_of_a_jitted_function_has_a_name_and_an_address():
    # `c_address`
    _, made = compiled(lambda a, b: a - 2 * b, BINARY)
    at = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(at)(7, 2) == 3


def test_overloads_are_found_by_the_types_of_their_arguments():
    # `c_address`, where a function has several
    dispatcher = numba.njit(lambda a, b: a + b)
    dispatcher.compile(BINARY)
    assert tuple(BINARY.args) in dispatcher.overloads


def test_the_calling_convention():
    # `raising_address` and `raising_call`: result and exception go to the first two arguments, the status is returned
    def ratio(a, b):
        if b == 0:
            raise ValueError
        return a // b

    _, made = compiled(ratio, BINARY)
    at = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    pointer = ctypes.c_void_p
    call = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, ctypes.c_int64, ctypes.c_int64)(at)
    result, raised = ctypes.c_int64(-1), ctypes.c_void_p()
    assert call(ctypes.addressof(result), ctypes.addressof(raised), 7, 2) == 0
    assert result.value == 3
    assert call(ctypes.addressof(result), ctypes.addressof(raised), 7, 0) != 0


def test_an_intrinsic_takes_its_arguments_from_the_signature_of_its_definition():
    # `c_call`, `raising_call` and `formula` make functions of any number of arguments
    def definition(typing, *_):
        def generate(context, builder, signature, values):
            return builder.sub(*values)

        return BINARY, generate

    names = ("typing", "a", "b")
    definition.__signature__ = inspect.Signature([inspect.Parameter(n, 1) for n in names])
    difference = intrinsic(definition)
    assert numba.njit(lambda a, b: difference(a, b))(5, 3) == 2
    with pytest.raises(numba.core.errors.TypingError):
        numba.njit(lambda a: difference(a))(5)


# -- numbers and arrays by address (memory.py, formulas.py) ----------------------------------------------------------


def test_an_array_is_made_over_an_address():
    # `vector_at`, `matrix_at` and the fields of tables
    kind = types.Array(types.float64, 1, "C")

    @intrinsic
    def two_at(typing, address):
        def generate(context, builder, signature, values):
            array = make_array(kind)(context, builder)
            eight = context.get_constant(types.intp, 8)
            two = context.get_constant(types.intp, 2)
            pointer = builder.inttoptr(values[0], ir.DoubleType().as_pointer())
            populate_array(array, data=pointer, shape=[two], strides=[eight], itemsize=eight, meminfo=None)
            return array._getvalue()

        return kind(types.intp), generate

    numbers = np.array([1.5, 2.5])
    assert numba.njit(lambda at: two_at(at).sum())(numbers.ctypes.data) == 4.0


def test_entries_of_arrays_are_loaded_and_stored():
    # `formula`, and `address_of`: the field `data`
    @intrinsic
    def move(typing, array):
        def generate(context, builder, signature, values):
            made = make_array(array)(context, builder, values[0])
            places = [[ir.Constant(ir.IntType(64), k)] for k in (0, 1)]
            first, second = (
                cgutils.get_item_pointer(context, builder, array, made, p, wraparound=False) for p in places
            )
            store_item(context, builder, array, load_item(context, builder, array, first), second)
            return builder.ptrtoint(made.data, ir.IntType(64))

        return types.intp(array), generate

    numbers = np.array([1.5, 2.5])
    assert numba.njit(lambda x: move(x))(numbers) == numbers.ctypes.data
    assert numbers.tolist() == [1.5, 1.5]


def test_a_plain_function_can_be_given_a_meaning_in_compiled_code():
    # `formula`: Python calls the function as it stands
    def half(x):
        return x / 2.0

    def typed(typing, x):
        def generate(context, builder, signature, values):
            return builder.fmul(values[0], ir.Constant(ir.DoubleType(), 0.5))

        return types.float64(types.float64), generate

    template = make_intrinsic_template(half, typed, "half")
    infer(template)
    infer_global(half, types.Function(template))
    assert numba.njit(lambda x: half(x))(3.0) == half(3.0) == 1.5


def test_products_and_sums_are_not_fused():
    # bits of compiled and plain code are the same: without `fastmath` there is no fused multiply-add
    def fused(a, b, c):
        return a * b + c

    text = code(fused, types.float64(*[types.float64] * 3))
    assert "fmuladd" not in text
    assert "contract" not in text
    a, b = 1.0 + 2.0**-30, 1.0 - 2.0**-30
    assert numba.njit(fused)(a, b, -1.0) == fused(a, b, -1.0) == 0.0  # fused it would be -2**-60


def test_an_empty_convergent_assembly_keeps_a_loop():
    # `short_loop`: no unrolling, no vectors, no machine code of its own
    @intrinsic
    def marker(typing):
        def generate(context, builder, signature, values):
            call = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
            call.attributes.add("convergent")
            return context.get_dummy_value()

        return types.void(), generate

    def plain(x):
        for k in range(len(x)):
            x[k] = 2.0 * x[k]

    def kept(x):
        for k in range(len(x)):
            marker()
            x[k] = 2.0 * x[k]

    signature = types.void(types.float64[::1])
    vectors = [len(re.findall(r"fmul <\d+ x double>", code(f, signature, _nrt=False))) for f in (plain, kept)]
    assert vectors[0] > 0
    assert vectors[1] == 0
    assert code(kept, signature, _nrt=False).count("fmul double") == 1


def test_atomics():
    # words that two processes watch (atomics.py)
    word = ir.IntType(64)

    @intrinsic
    def exchange(typing, address, value):
        def generate(context, builder, signature, values):
            pointer = builder.inttoptr(values[0], word.as_pointer())
            old = builder.load_atomic(pointer, "seq_cst", 8)
            builder.store_atomic(values[1], pointer, "seq_cst", 8)
            return builder.add(old, builder.atomic_rmw("xchg", pointer, ir.Constant(word, 9), "seq_cst"))

        return types.int64(types.intp, types.int64), generate

    words = np.array([5])
    assert numba.njit(lambda at, v: exchange(at, v))(words.ctypes.data, 2) == 7
    assert words[0] == 9
    text = code(lambda at, v: exchange(at, v), types.int64(types.intp, types.int64))
    assert "load atomic" in text
    assert "store atomic" in text


# -- rows.py and assembly.py ---------------------------------------------------------------------------------------


def test_loops_and_vectors_of_the_builder():
    # `row_products`
    assert {"start", "intp"} <= set(inspect.signature(cgutils.for_range).parameters)
    assert str(ir.VectorType(ir.DoubleType(), 8)) == "<8 x double>"


def test_llvm_compiles_text_for_this_machine():
    # `assembled`: numba has made LLVM ready, the pass builder optimises, MCJIT finds the address
    text = "define i64 @twice(i64 %x) {\n %y = add i64 %x, %x\n ret i64 %y\n}"
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), opt=3)
    module = llvm.parse_assembly(text)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("twice"))(21) == 42


def test_nothing_but_the_package_knows_the_inside():
    # the facts above are all there are: no other module touches numba.core, llvmlite or private options
    import cosolve

    root = Path(cosolve.__file__).parent
    inside = re.compile(r"numba\.(core|np|cpython)\b|llvmlite|_nrt\b|\.fndesc\b|\.overloads\b|import intrinsic")
    found = [p for p in root.rglob("*.py") if p.parent != root / "jit" and inside.search(p.read_text(encoding="utf-8"))]
    assert found == []
