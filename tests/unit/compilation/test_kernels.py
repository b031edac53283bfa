"""How kernels are put together: wrappers only for Python, stages by address, large tuples by reference, and one process at a time."""

import gc
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest
from numba.core import event, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import run_frontend
from numba.core.errors import NumbaError, TypingError
from numba.core.runtime import _nrt_python, rtsys
from numba.core.types.functions import Function

from hilsim.compilation.dispatcher import Kernel
from hilsim.compilation.inference import less_repetition
from hilsim.compilation.jit import borrowing_kernel, by_reference, compile_for, inlined_kernel, kernel, placed, stage_kernel
from hilsim.compilation.linking import CallTarget

pytestmark = pytest.mark.extended


class Inner(NamedTuple):
    scale: float
    offsets: npt.NDArray[np.float64]


@placed
class Tall(NamedTuple):
    rows: npt.NDArray[np.float64]
    first: float
    others: tuple[int, int]


@kernel
def height(tall: Tall, row: int) -> float:
    """Python calls it with a tuple that is placed; an index out of bounds is not checked, a negative one raises."""
    if row < 0:
        raise ValueError("row must be 0 or more")
    return tall.rows[row] * tall.first + tall.others[1]


@by_reference
class Middle(NamedTuple):
    count: int
    inner: Inner


@by_reference
class Outer(NamedTuple):
    middle: Middle
    values: npt.NDArray[np.float64]
    is_on: bool


@kernel
def doubled(value):
    return 2 * value


@stage_kernel
def scaled(outer, index) -> float:
    middle = outer.middle
    inner = middle.inner
    return doubled(inner.scale * outer.values[index] + inner.offsets[index]) + middle.count


@kernel
def total(outer):
    found = 0.0
    for index in range(outer.values.size):
        found += scaled(outer, index)
    return found if outer.is_on else -1.0


@kernel
def of_middle(middle):
    return middle.count + middle.inner.offsets.size


@kernel
def through(outer):
    return of_middle(outer.middle)


@kernel
def unpacked(outer):
    _, values, _ = outer
    return values[0]


@kernel
def refused(outer):
    if outer.is_on:
        raise ValueError("no more")
    return 0


@kernel
def checked(value):
    if value < 0:
        raise ValueError("must be 0 or more", value)
    return value


@kernel
def checks(value):
    return checked(value) + 1


@kernel
def unknown(outer):
    return outer.colour


@stage_kernel
def refuses(value) -> int:
    if value < 0:
        raise ValueError("value must be 0 or more")
    return value


@kernel
def asks(value):
    return refuses(value) + 1


@kernel
def asks_twice(value):
    return 2 * asks(value)


@stage_kernel
def later(value) -> float:
    return value + 1.0


@kernel
def calls_later(value):
    return later(value) + 1.0


@stage_kernel
def untrue(value) -> int:
    return value


@stage_kernel
def pair(value) -> tuple[tuple[float, int], bool]:
    return (value, int(value)), value > 0.0


@inlined_kernel
def tripled(value):
    return 3 * value


def outer(*, is_on=True):
    return Outer(Middle(3, Inner(2.0, np.array([1.0, 2.0, 3.0]))), np.array([10.0, 20.0, 30.0]), is_on)


def test_fields_are_read_through_addresses_at_any_depth():
    assert total(outer()) == sum(2 * (2.0 * value + offset) + 3 for value, offset in ((10, 1), (20, 2), (30, 3)))
    assert total(outer(is_on=False)) == -1.0


def test_a_tuple_within_is_the_same_to_a_kernel_whether_python_or_a_kernel_passes_it():
    assert of_middle(outer().middle) == through(outer()) == 6
    assert len(of_middle.signatures) == 1


def test_what_is_passed_by_address_has_only_its_fields():
    with pytest.raises(TypingError, match="colour"):
        unknown(outer())
    with pytest.raises(TypingError, match="unpack"):
        unpacked(outer())


def test_arguments_passed_by_address_are_not_stored():
    outer = Outer(Middle(3, Inner(2.0, np.zeros(4))), np.ones(4), is_on=True)
    arrays = (outer.values, outer.middle.inner.offsets)
    before = [sys.getrefcount(each) for each in arrays]
    for _ in range(10):
        assert total(outer) == 28.0
        assert of_middle(outer.middle) == 7
        with pytest.raises(ValueError, match="no more"):
            refused(outer)
    assert [sys.getrefcount(each) for each in arrays] == before


def test_a_placed_tuple_is_written_once_and_given_up_with_it():
    rows = np.array([2.0, 3.0])
    tall, before = Tall(rows, 0.5, (7, 8)), sys.getrefcount(rows)
    assert height(tall, 1) == height.py_func(tall, 1) == 9.5
    with pytest.raises(ValueError, match="0 or more"):
        height(tall, -1)
    once = sys.getrefcount(rows)
    assert height(tall, 0) == 9.0
    rows[0] = 4.0
    assert height(tall, 0) == 10.0
    other = tall._replace(first=2.0)
    assert (height(other, 0), height(tall, 0)) == (16.0, 10.0)
    assert sys.getrefcount(rows) == once + 1  # of the other tuple, and not of its place
    del other, tall
    after = sys.getrefcount(rows)
    assert after == before - 1


def test_a_placed_tuple_is_pickled_without_its_place_and_is_as_one_without():
    tall = Tall(np.array([2.0, 3.0]), 0.5, (7, 8))
    height(tall, 0)
    copy = pickle.loads(pickle.dumps(tall))  # noqa: S301 - what was pickled here
    assert type(copy) is Tall
    assert vars(copy) == {}
    assert height(copy, 1) == 9.5
    assert Tall._fields == ("rows", "first", "others")


def test_a_placed_tuple_of_other_types_has_kernels_of_its_own():
    assert height(Tall(np.array([2, 3]), 2.0, (7, 8)), 1) == 14.0
    assert height(Tall(np.array([2.0, 3.0]), 2.0, (7, 8)), 0) == 12.0
    compile_for(height, Tall(np.array([2.0, 3.0]), 2.0, (7, 8)), 0)


def test_numba_is_as_it_was_when_nothing_compiles():
    before = (vars(Function).get("get_call_type"), ir.Inst._rec_list_vars, event.install_timer, gc.isenabled())
    with less_repetition(), less_repetition():
        assert not gc.isenabled()
    with suppress(RuntimeError), less_repetition():
        raise RuntimeError
    assert (vars(Function).get("get_call_type"), ir.Inst._rec_list_vars, event.install_timer, gc.isenabled()) == before


def test_variables_of_instructions_are_those_that_numba_lists():
    function = run_frontend(height.py_func)
    instructions = [each for block in function.blocks.values() for each in block.body]
    listed = [[variable.name for variable in each.list_vars()] for each in instructions]
    with less_repetition():
        assert [[variable.name for variable in each.list_vars()] for each in instructions] == listed
    assert any(listed)


def test_keywords_and_defaults_work_as_in_python():
    @kernel
    def power(base, exponent=2):
        return base**exponent

    assert (power(3.0), power(3.0, 3), power(exponent=1, base=3.0)) == (9.0, 27.0, 3.0)


def test_the_error_of_a_stage_comes_through_its_caller():
    assert asks(1) == 2
    with pytest.raises(ValueError, match="value must be 0 or more"):
        asks(-1)


def test_a_kernel_that_only_kernels_call_has_no_wrapper():
    total(outer())
    library = next(iter(scaled.overloads.values())).library
    descriptor = next(iter(scaled.overloads.values())).fndesc
    assert library.get_pointer_to_function(descriptor.llvm_func_name)
    assert not library.get_pointer_to_function(descriptor.llvm_cpython_wrapper_name)
    assert not library.get_pointer_to_function(descriptor.llvm_cfunc_wrapper_name)


def test_only_what_is_called_has_machine_code():
    """By Python or by its address: a kernel that becomes part of others never runs by itself."""
    total(outer())
    inner, stage, whole = (next(iter(each.overloads.values())).library for each in (doubled, scaled, total.from_python()))
    assert (inner._is_unlinked, stage._is_unlinked, whole._is_unlinked) == (True, False, False)
    assert doubled(4) == 8  # through a kernel of one line, which has


def test_an_error_with_a_figure_comes_out_of_a_kernel_without_machine_code():
    with pytest.raises(ValueError, match=r"must be 0 or more.*-3"):
        checks(-3)


def declared(library):
    """Names in a library's module, and whether the function is elsewhere."""
    return {function.name: function.is_declaration for function in library._final_module.functions}


def test_a_stage_is_no_part_of_its_callers_and_a_kernel_is():
    total(outer())
    whole = next(iter(total.from_python().overloads.values())).library
    target = CallTarget(scaled.__module__, "scaled", next(iter(scaled.overloads)))
    assert declared(whole)[target.symbol]
    assert target in whole._reload_init
    assert not any("doubled" in name for name in declared(whole))
    stage = next(iter(scaled.overloads.values())).library
    assert not any("doubled" in name and is_elsewhere for name, is_elsewhere in declared(stage).items())


def test_callees_of_a_kernel_are_linked_when_machine_code_is_made_and_not_before():
    assert asks_twice(1) == 4
    part, whole = (next(iter(each.overloads.values())).library for each in (asks_twice, asks_twice.from_python()))
    inner = {each.fndesc.llvm_func_name for each in asks.overloads.values()} & {*declared(part)}  # other tests compile it for a literal
    assert len(inner) == 1
    assert all(declared(part)[name] for name in inner)
    assert not any(declared(whole).get(name, False) for name in inner)


def test_other_numba_code_in_the_process_is_unaffected_and_can_call_kernels():
    total(outer())

    @numba.vectorize(["float64(float64)"])
    def halved(value):
        return 0.5 * value

    @numba.cfunc("float64(float64)")
    def squared(value):
        return value * value

    @numba.njit
    def factorial(number):
        return 1 if number < 2 else number * factorial(number - 1)

    @numba.njit
    def through_kernels(value):
        return halved(doubled(value)) + asks(1) + np.round(factorial(3))

    assert through_kernels(4.0) == 4.0 + 2.0 + 6.0
    assert squared.ctypes(3.0) == 9.0
    assert halved(np.array([2.0, 4.0])).tolist() == [1.0, 2.0]
    assert type(next(iter(factorial.overloads.values())).library) is JITCodeLibrary
    assert type(next(iter(doubled.overloads.values())).library) is not JITCodeLibrary


def test_a_caller_is_compiled_without_the_stage_it_calls():
    compile_for(calls_later, 1.0)
    assert (len(calls_later.signatures), len(later.signatures)) == (1, 0)
    assert calls_later(1.0) == 3.0
    assert len(later.signatures) == 1


def test_a_stage_returns_what_its_annotation_says():
    def silent(value):
        return value

    def array(value) -> np.ndarray:
        return value

    with pytest.raises(TypeError, match=r"silent: a stage must say what it returns, got no annotation"):
        stage_kernel(silent)
    with pytest.raises(TypeError, match=r"a stage must return None, a bool, an int, a float or a tuple of them, got <class 'numpy.ndarray'>"):
        stage_kernel(array)
    with pytest.raises(TypeError, match="untrue must return int64, as its annotation says, got float64"):
        compile_for(untrue, 1.0)
    assert pair(2.0) == ((2.0, 2), True)


@borrowing_kernel
def least(values):
    found = np.inf
    for value in values:
        found = min(found, value)
    return found


@kernel
def least_of_some(values, count):
    """Arrays that a kernel makes are counted, also where one that does not count is given them."""
    found = 0.0
    for number in range(count):
        found += least(values + number)
    return found


@borrowing_kernel
def least_counted(values):
    """A kernel that counts has its own way within one that does not."""
    return least_of_some(values, 3) + least(values)


def test_a_borrowing_kernel_leaves_the_counts_of_its_arrays_as_they_are():
    values = np.array([3.0, 1.0, 2.0])
    assert least_counted(values) == 1.0 + 2.0 + 3.0 + 1.0
    held = sys.getrefcount(values)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(1000):
        least_counted(values)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free >= 3000
    assert sys.getrefcount(values) == held


def test_a_borrowing_kernel_neither_makes_nor_returns_an_array():
    @borrowing_kernel
    def given(values):
        return values

    @borrowing_kernel
    def made(count):
        return np.zeros((count, 2, 3, 4), np.int16).size  # as no other kernel makes: Numba refuses only what it compiles anew

    with pytest.raises(TypeError, match="given must return no arrays, because it counts no references, got array"):
        compile_for(given, np.zeros(3))
    with pytest.raises(NumbaError, match=r"NRT required but not enabled|Only accept returning of array passed into the function"):
        compile_for(made, 3)


def test_a_kernel_is_compiled_for_types_without_being_called():
    @kernel
    def never(value):
        raise ValueError(value)

    compile_for(never, 1.0)
    assert len(never.signatures) == 1
    compile_for(tripled, 1.0)  # no kernel of its own: nothing to do


MODULE = """
from hilsim.compilation.jit import inlined_kernel, kernel, stage_kernel

@inlined_kernel
def inlined(values):
    return values.copy().sum()

@stage_kernel
def stage(value) -> int:
    return value * {factor}

@kernel
def caller(value):
    return stage(value) + 1

@kernel
def outermost(value):
    return caller(value) + 1
"""
CALL = "from hilsim.probe import caller, stage; print(caller(5), caller.stats.cache_hits != {}, stage._cache_hits != {})"


def run(code, place, home, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "CACHE_DIRECTORY"))}
    environment |= {"PYTHONPATH": str(place), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}  # sources that change within a second
    return subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        **more,
    ).stdout.split()


@pytest.fixture
def probe(tmp_path):
    """A copy of the package's few modules that kernels need, with a module of two kernels."""
    package = Path(sys.modules["hilsim"].__file__).parent
    place = tmp_path / "place" / "hilsim"
    place.mkdir(parents=True)
    for name in ("__init__.py", "lazy_imports.py", "version.py"):
        (place / name).write_bytes((package / name).read_bytes())
    shutil.copytree(package / "compilation", place / "compilation", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "probe.py").write_text(MODULE.format(factor=2))
    return place


def test_a_second_process_loads_the_caller_and_the_stage_it_calls(probe, tmp_path):
    assert run(CALL, probe.parent, tmp_path / "cache") == ["11", "False", "False"]
    assert run(CALL, probe.parent, tmp_path / "cache") == ["11", "True", "True"]


def test_a_loaded_kernel_has_its_machine_code(probe, tmp_path):
    """Numba gives no access to code from the cache: that tells it from code that was made here."""
    looks = "; print(*(next(iter(each.overloads.values())).library._disable_inspection for each in (stage, caller.from_python())))"
    assert run(CALL + looks, probe.parent, tmp_path / "cache")[3:] == ["False", "False"]
    assert run(CALL + looks, probe.parent, tmp_path / "cache")[3:] == ["True", "True"]


def test_a_second_process_loads_what_is_inlined_elsewhere_before_any_kernel(probe, tmp_path):
    code = "import numpy as np; from hilsim.probe import inlined; print(inlined(np.ones(3)), inlined.stats.cache_hits != {})"
    assert run(code, probe.parent, tmp_path / "cache") == ["3.0", "False"]
    assert run(code, probe.parent, tmp_path / "cache") == ["3.0", "True"]


PARTS = """
from hilsim.compilation.jit import kernel, stage_kernel

@kernel
def inner(value):
    if value < 0:
        raise ValueError("must be 0 or more, got", value)
    return value

@kernel
def middle(value):
    return inner(value)

@kernel
def first(value):
    return middle(value)

@kernel
def second(value):
    return middle(value)

@stage_kernel
def stage(value) -> int:
    return second(value)

@kernel
def third(value):
    return stage(value)
"""


def test_an_error_with_a_figure_comes_out_of_parts_that_another_process_compiled(probe, tmp_path):
    """Each makes machine code of what the one before has kept as part of its own; the last loads the code itself."""
    (probe / "probe.py").write_text(PARTS)
    for name in ("first", "second", "third", "third"):
        code = f"""
        from hilsim.probe import {name}
        assert {name}(5) == 5
        try:
            {name}(-3)
        except ValueError as error:
            print(error.args[1])
        """
        assert run(code, probe.parent, tmp_path / "cache") == ["-3"]


def test_a_stage_whose_code_is_gone_is_compiled_again_before_its_caller_runs(probe, tmp_path):
    run(CALL, probe.parent, tmp_path / "cache")
    gone = [entry for entry in (tmp_path / "cache").rglob("*.nb?") if "stage-" in entry.name]
    assert gone
    for entry in gone:
        entry.unlink()
    assert run(CALL, probe.parent, tmp_path / "cache") == ["11", "True", "False"]


def test_a_caller_of_a_kernel_from_another_process_also_finds_its_callees(probe, tmp_path):
    """The one in the middle becomes part of the outermost, and with it the call of the stage."""
    run(CALL, probe.parent, tmp_path / "cache")
    for _ in range(2):
        assert run("from hilsim.probe import outermost; print(outermost(5))", probe.parent, tmp_path / "cache") == ["12"]


def test_a_changed_stage_is_not_called_by_code_of_its_former_self(probe, tmp_path):
    run(CALL, probe.parent, tmp_path / "cache")
    (probe / "probe.py").write_text(MODULE.format(factor=3))
    assert run(CALL, probe.parent, tmp_path / "cache")[0] == "16"


def test_processes_that_begin_at_once_compile_each_kernel_once(probe, tmp_path):
    code = """
    import pathlib, sys, time
    from numba.core import event
    from hilsim.probe import caller
    count = [0]
    class Count(event.Listener):
        def on_start(self, _): count[0] += 1
        def on_end(self, _): pass
    event.register("numba:compile", Count())
    begin = pathlib.Path(sys.argv[1])
    while not begin.exists(): time.sleep(0.001)
    caller(5)
    print(count[0])
    """
    environment = os.environ | {"PYTHONPATH": str(probe.parent), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    begin = tmp_path / "begin"
    command = [sys.executable, "-P", "-c", textwrap.dedent(code), str(begin)]
    children = [subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    begin.touch()
    counts = [int(child.communicate(timeout=240)[0]) for child in children]
    assert sum(counts) == 3  # the stage, the caller, and the kernel between it and Python


def test_kernels_are_plain_functions_where_compiling_is_off():
    code = "from hilsim.compilation.jit import kernel, stage_kernel, compile_for; f = stage_kernel(lambda x: x + 1); print(f(1), type(f).__name__); compile_for(f, 1)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout.split() == [
        "2",
        "function",
    ]


def test_a_kernel_is_a_dispatcher_of_numbas():
    assert isinstance(total, Kernel)
    assert total.py_func(outer()) == total(outer())
