"""Code is imported without its documentation strings, and does the same."""

import ast
import dataclasses
import subprocess
import sys
from types import CodeType
from typing import Any

import pytest

import kadcrawl.store.store
from kadcrawl.system.lean_code import without_docstrings

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="there the texts stay")

SOURCE = '''
"""The text of the module."""

import dataclasses

@dataclasses.dataclass
class Point:
    """The text of a class."""

    x: int = 1
    """The text of a field."""

    def moved(self, by):
        """The text of a method."""
        def inner():
            """The text of a function in it."""
            return "the result of a function"
        return self.x + by, inner()

async def later():
    """The text of a coroutine."""
    return [text for text in ("the only text of a comprehension",)]

def used_otherwise():
    """A text that the function returns."""
    return "A text that the function returns."

class UsedOtherwise:
    """A text that the class keeps."""
    kept = "A text that the class keeps."

named = lambda: "a text of a function without a name"
'''


def run(code: CodeType) -> dict[str, Any]:
    module: dict[str, Any] = {"__name__": "lean"}
    exec(code, module)
    return module


@pytest.fixture(scope="module")
def lean() -> dict[str, Any]:
    return run(without_docstrings(compile(SOURCE, "lean.py", "exec")))


def texts_of(code: CodeType) -> list[str]:
    """Return the long texts among the constants of this code and all code in it."""
    found = [const for const in code.co_consts if isinstance(const, str) and len(const) > 15]
    return [*found, *(text for const in code.co_consts if isinstance(const, CodeType) for text in texts_of(const))]


def words(text: str) -> list[str]:
    return text.split()


def test_documentation_strings_are_gone(lean: dict[str, Any]) -> None:
    point = lean["Point"]
    assert (None, None, None) == (lean["__doc__"], point.moved.__doc__, lean["later"].__doc__)
    assert "." == point.__doc__, "or a dataclass would make a text"


def test_what_the_code_does_is_the_same(lean: dict[str, Any]) -> None:
    assert (5, "the result of a function") == lean["Point"](2).moved(3)
    assert ["x"] == [field.name for field in dataclasses.fields(lean["Point"])]
    assert "a text of a function without a name" == lean["named"]()
    with pytest.raises(StopIteration) as ended:
        lean["later"]().send(None)
    assert ["the only text of a comprehension"] == ended.value.value


def test_a_text_that_the_code_uses_otherwise_stays(lean: dict[str, Any]) -> None:
    assert "A text that the function returns." == lean["used_otherwise"]()
    assert "A text that the class keeps." == lean["UsedOtherwise"].kept


def test_nothing_but_documentation_strings_of_a_large_module_is_left_out() -> None:
    with open(kadcrawl.store.store.__file__, encoding="utf-8") as file:
        source = file.read()
    whole = compile(source, "store.py", "exec", dont_inherit=True)
    documented = ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | ast.Module
    docs = [ast.get_docstring(one, clean=False) for one in ast.walk(ast.parse(source)) if isinstance(one, documented)]
    left = texts_of(without_docstrings(whole))
    gone = texts_of(whole)
    for text in left:
        gone.remove(text)
    # Python 3.13 leaves out the indentation of the lines.
    assert sorted(words(text) for text in gone) == sorted(words(doc) for doc in docs if doc and len(doc) > 15)
    assert len(gone) > 30


def test_code_without_such_texts_stays_as_it_is() -> None:
    code = compile("def f(x):\n    return x + 1\n", "plain.py", "exec")
    assert without_docstrings(code) is code


def test_a_process_imports_its_modules_so() -> None:
    program = """
from kadcrawl.system.lean_code import drop_docstrings
drop_docstrings()
import json.decoder, kadcrawl.keys, zlib
print(json.decoder.JSONDecoder.decode.__doc__, kadcrawl.keys.__doc__, json.loads("[1]"), json.decoder.__file__[-10:])
try:
    json.loads("[")
except ValueError as error:
    import traceback
    print("raise JSONDecodeError" in traceback.format_exc())
"""
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert "None None [1] decoder.py\nTrue\n" == said
