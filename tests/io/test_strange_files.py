"""System files written by hand, with every kind of mistake: a sentence each, with file and line."""

import tomllib

import pytest
from tests.io.test_system_file import LAW, MASSES, SIMULATION

import cosolve as cs
from cosolve.io import load_system, toml_text

GOOD = MASSES + LAW + SIMULATION
METHOD, STEP = 'method = "semi-implicit"', "step = 0.01"
FMU = '[subsystems.three]\nfmu = "x.fmu"\n'
NUMBER = "9" * 5000

CASES = {
    "a corrector that is a number": (METHOD, 'method = {name = "implicit", corrector = 3}', "corrector is a name or a"),
    "a corrector that is a list": (METHOD, 'method = {name = "implicit", corrector = [1]}', "not [1]"),
    "a corrector inside that is missing": (
        METHOD,
        'method = {name = "implicit", corrector = {name = "line-search"}}',
        "corrector 'line-search' needs the option 'corrector'",
    ),
    "a corrector inside that is a number": (
        METHOD,
        'method = {name = "implicit", corrector = {name = "line-search", corrector = 1}}',
        "corrector is a name or a table with a name, not 1",
    ),
    "a treatment that is a number": (
        METHOD,
        'method = {name = "semi-implicit", constraints = 3}',
        "constraint treatment",
    ),
    "no name": (METHOD, "method = {}", "method needs a name"),
    "a device": (LAW, FMU.replace("x.fmu", "/dev/zero") + LAW, "'/dev/zero' cannot be read: it is a device"),
    "a character that no path has": (LAW, FMU.replace("x.fmu", "a\\u0000b") + LAW, "not a path"),
    "an option that has a key": (LAW, FMU + "options = {parameters = {}}\n" + LAW, "'parameters' is no option"),
    "an option that follows": (LAW, FMU + 'options = {name = "y"}\n' + LAW, "'name' is no option"),
    "a module that ends itself": (
        LAW,
        '[subsystems.q]\nfactory = "ends:f"\n' + LAW,
        "importing 'ends' raised SystemExit",
    ),
    "a factory that ends": (LAW, '[subsystems.q]\nfactory = "quits:f"\n' + LAW, "'quits:f' raised SystemExit: 3"),
    "a result without a name": (
        SIMULATION,
        SIMULATION + '[output]\nfile = "."\ncsv = true\n',
        "not the name of a file",
    ),
    "brackets without end": (MASSES, "a = " + "[" * 2000 + "]" * 2000, "brackets inside brackets"),
    "tables without end": (MASSES, "a = " + "{b = " * 500 + "1" + "}" * 500, "brackets inside brackets"),
    "names without end": (MASSES, "a." * 1500 + "b = 1", "unknown table 'a'"),
    "a number without end": (MASSES, f"a = {NUMBER}", "is not valid TOML: exceeds the limit"),
    "inputs that are a number": (MASSES, "inputs = 3\n" + MASSES, "inputs"),
    "a name over two lines": (MASSES, MASSES.replace('["f"]', '["f\\ng"]', 1), "'f g'"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_says_what_is_wrong(case, tmp_path):
    old, new, sentence = CASES[case]
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(1)\n")
    (tmp_path / "quits.py").write_text("import sys\ndef f():\n    sys.exit(3)\n")
    (tmp_path / "system.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(cs.errors.SetupError) as refused:
        load_system(tmp_path / "system.toml")
    said = str(refused.value)
    assert sentence in said
    assert said.startswith("system.toml")
    assert "\n" not in said
    assert len(said) < 1500


def test_a_mark_before_the_first_line_is_no_fault(tmp_path):
    """Some editors on Windows write one, and ends of lines of two characters."""
    (tmp_path / "system.toml").write_bytes(GOOD.replace("\n", "\r\n").encode("utf-8-sig"))
    assert load_system(tmp_path / "system.toml").options.t_end == 1.0


def test_a_long_matrix_is_searched_once(tmp_path, monkeypatch):
    """The line of a mistake behind a matrix of 20 000 lines: each statement is read once, not once per line."""
    matrix = "big = [\n" + "  [0.0], # ] a row\n" * 20_000 + "]\n"
    file = tmp_path / "system.toml"
    file.write_text(MASSES.replace("B = ", matrix + "B = ", 1) + LAW + SIMULATION)
    reads, real = [], tomllib.loads
    monkeypatch.setattr(toml_text.tomllib, "loads", lambda text: reads.append(len(text)) or real(text))
    with pytest.raises(cs.errors.SetupError, match=r"line 7, \[subsystems.one\]: unknown key 'big'"):
        load_system(file)
    assert sum(reads) < 2.1 * file.stat().st_size
    assert max(toml_text.line_numbers(file.read_text()).values()) == file.read_text().count("\n")


def test_brackets_and_ends_of_lines_in_texts():
    text = "\n".join(
        [
            "a = '''[",  # 1
            "{''''",  # a quote before the end
            'b = """\\"""[',  # 3, a quote that does not end it
            '"""""',  # two quotes before the end
            "c = [",  # 5
            '  \'#\', "[\\"", # ]',
            "]",
            "d = {e = '}'} # {",  # 8
            "f = ''",  # 9
            'g = ""',  # 10
        ]
    )
    lines = toml_text.line_numbers(text)
    assert {key[0]: line for key, line in lines.items() if len(key) == 1} == {
        "a": 1,
        "b": 3,
        "c": 5,
        "d": 8,
        "f": 9,
        "g": 10,
    }
    assert lines["d", "e"] == 8
