"""Archives as other tools pack them, and damaged ones: unpacked safely, or refused in one true sentence."""

import os
import socket
import sys
import zipfile
from pathlib import Path

import pytest
from tests import processes
from tests.fmu.build import fmu

import cosolve as cs
from cosolve.fmu import archive
from cosolve.io import load_system
from cosolve.run import Snapshot

DESCRIPTION = (
    '<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g"><CoSimulation modelIdentifier="m"/>'
    "<ModelVariables/><ModelStructure/></fmiModelDescription>"
)


def packed(file: Path, *entries, description=DESCRIPTION) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("modelDescription.xml", description)
        for name, data in entries:
            zipped.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return file


def refusal(file, call=archive.unpack) -> str:
    with pytest.raises(cs.errors.SetupError) as error:
        call(file)
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


# -- names -------------------------------------------------------------------------------------------------------


def test_a_folder_listed_twice_is_one_folder(tmp_path):
    """As in an official build of the reference FMUs: two entries `extra/`, both empty."""
    with pytest.warns(UserWarning, match="Duplicate"):
        file = packed(tmp_path / "a.fmu", ("extra/", b""), ("extra/x.txt", b"1"), ("extra/", b""))
    assert (archive.unpack(file) / "extra" / "x.txt").read_bytes() == b"1"


def test_a_file_listed_twice_with_one_content_is_one_file(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        file = packed(tmp_path / "a.fmu", ("resources/x.txt", b"same"), ("resources/x.txt", b"same"))
    assert (archive.unpack(file) / "resources" / "x.txt").read_bytes() == b"same"
    other = packed(tmp_path / "b.fmu", ("resources/x.txt", b"one"), ("resources\\x.txt", b"two"))
    assert "twice with different content" in refusal(other)


def test_backslashes_mean_slashes(tmp_path):
    file = packed(tmp_path / "a.fmu", ("binaries\\win64/", b""), ("binaries\\win64\\m.dll", b"MZ"), (".\\r\\x", b"x"))
    folder = archive.unpack(file)
    assert (folder / "binaries" / "win64" / "m.dll").read_bytes() == b"MZ"
    assert (folder / "r" / "x").read_bytes() == b"x"
    assert not [name for name in os.listdir(folder) if "\\" in name]


@pytest.mark.parametrize(
    "name", ["..\\evil", "a\\..\\..\\evil", "\\evil", "\\\\host\\evil", "c:\\evil", "a/..\\../evil", "//evil"]
)
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    text = refusal(packed(tmp_path / "a.fmu", (name, b"evil")))
    assert "outside its folder" in text
    assert not list(tmp_path.parent.rglob("evil"))


def test_a_file_where_a_folder_is_needed(tmp_path):
    assert "cannot be unpacked" in refusal(packed(tmp_path / "a.fmu", ("x", b"1"), ("x/y", b"2")))


def test_a_packed_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.fmu", "w") as zipped:
        zipped.writestr("model/modelDescription.xml", DESCRIPTION)
    text = refusal(tmp_path / "a.fmu")
    assert "no modelDescription.xml at its top level" in text
    assert "it lies in 'model'" in text


# -- sizes -------------------------------------------------------------------------------------------------------


def lying(file: Path, size: int) -> Path:
    """The last entry's size in the list of entries is changed to `size`."""
    data = bytearray(file.read_bytes())
    where = data.rindex(b"PK\x01\x02")
    data[where + 24 : where + 28] = size.to_bytes(4, "little")
    file.write_bytes(bytes(data))
    return file


def test_zeros_packed_a_thousandfold_are_refused(tmp_path, monkeypatch):
    file = packed(tmp_path / "bomb.fmu", ("zeros", b"\0" * 3_000_000))
    monkeypatch.setattr(archive, "FREE_BYTES", 10**6)
    text = refusal(file)
    assert "grow more than 200 times" in text
    assert "2.9 MiB" in text
    monkeypatch.setattr(archive, "FREE_BYTES", 10**7)  # small enough not to matter
    assert (archive.unpack(file) / "zeros").stat().st_size == 3_000_000


def test_limits_hold_for_what_is_written(tmp_path, monkeypatch):
    """Whatever the list of entries says: here the first look, which is at the list, is left out."""
    file = packed(tmp_path / "bomb.fmu", ("zeros", b"\0" * 9_000_000))
    monkeypatch.setattr(archive, "FREE_BYTES", 10**6)
    judge, sizes = archive._refuse_growth, []

    def after_the_list(path, size, whole):
        sizes.append(size)
        if len(sizes) > 1:
            judge(path, size, whole)

    monkeypatch.setattr(archive, "_refuse_growth", after_the_list)
    before = set(archive._root().iterdir())
    assert "grow more than 200 times" in refusal(file)
    assert sizes[0] > 9_000_000
    assert sizes[-1] < 4_000_000  # ended before all of it was written
    assert set(archive._root().iterdir()) == before  # and what was written is gone


def test_sizes_that_are_not_true(tmp_path):
    """A size too small cuts the entry off, one too large asks for bytes that are not there: both are damage."""
    for size in (10, 2**31):
        file = lying(packed(tmp_path / f"{size}.fmu", ("x", os.urandom(3_000_000))), size)
        assert any(word in refusal(file) for word in ("damaged", "grow", "would unpack"))


def test_an_honest_large_archive_is_unpacked(tmp_path, monkeypatch):
    """A tenth noise and the rest zeros, as in a sparse table: far below the limit."""
    piece = os.urandom(100_000)
    file = packed(tmp_path / "large.fmu", ("table", (piece + b"\0" * 900_000) * 5))
    monkeypatch.setattr(archive, "FREE_BYTES", 10**6)
    assert (archive.unpack(file) / "table").stat().st_size == 5_000_000


def test_packing_methods_of_other_kinds(tmp_path):
    """Only deflate can be unpacked piece by piece: bzip2 makes a gigabyte from 700 bytes in one piece."""
    with zipfile.ZipFile(tmp_path / "a.fmu", "w", zipfile.ZIP_BZIP2) as zipped:
        zipped.writestr("modelDescription.xml", DESCRIPTION)
    assert "zip method 12" in refusal(tmp_path / "a.fmu")


# -- what is no file ---------------------------------------------------------------------------------------------

READERS = """
import sys
from pathlib import Path
import cosolve as cs
from cosolve.io import load_system
from cosolve.run import Snapshot

for path in sys.argv[1:]:
    for read in (cs.load_fmu, cs.fmi.inspect_fmu, cs.fmi.read_ssp, load_system, lambda p: Snapshot.read(Path(p))):
        try:
            read(path)
        except cs.CosolveError as error:
            print(error)
"""


def test_devices_pipes_and_sockets_are_refused_at_once(tmp_path, monkeypatch):
    """In a process of its own, which is ended should it wait for a pipe after all."""
    monkeypatch.chdir(tmp_path)  # the address of a socket may have 100 characters
    os.mkfifo("pipe.fmu")
    os.mkfifo("pipe.ssp")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.fmu")
        paths = ["/dev/zero", "pipe.fmu", "pipe.ssp", "socket.fmu"]
        done = processes.run([sys.executable, "-c", READERS, *paths])
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert len(said) == 20
    assert all("not a file" in line for line in said)


@pytest.mark.parametrize(
    "path", ["a\0b.fmu", "x" * 5000, "\ud800.fmu", "a/" * 3000 + "x.ssp"], ids=["NUL", "x", "half", "/"]
)
def test_texts_that_are_no_path(path):
    for read in (cs.load_fmu, cs.fmi.inspect_fmu, cs.fmi.read_ssp, load_system, lambda p: Snapshot.read(Path(p))):
        assert any(word in refusal(path, read) for word in ("not a path", "cannot be read: File name too long"))


def test_nothing_is_no_path():
    assert "path of its file" in refusal("")


# -- libraries ---------------------------------------------------------------------------------------------------


SUFFIX = archive._SUFFIXES.get(sys.platform, ".so")


def test_the_only_library_is_taken_whatever_its_name(tmp_path):
    """Some tools name the library after the file; it runs, and that it was taken is said once."""
    here = f"binaries/{archive.platform_folder(2)}"
    good = fmu("mass_force", 2)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "a.fmu", "w") as new:
        for name in old.namelist():
            new.writestr(name.replace(f"mass_force{SUFFIX}", f"mass-1.0{SUFFIX}"), old.read(name))
    with pytest.warns(UserWarning, match=rf"no library mass_force{SUFFIX}.*mass-1.0{SUFFIX}, the only one in {here}"):
        renamed = cs.load_fmu(tmp_path / "a.fmu")
    cs.load_fmu(tmp_path / "a.fmu")  # warnings are errors here

    def run(part):
        system = cs.System({"m": part})
        system.set("m.f", 1.0)
        return cs.simulate(system, t_end=0.1, method=cs.Jacobi(0), step=0.01)["m.x"].tolist()

    assert run(renamed) == run(cs.load_fmu(good))


def test_libraries_of_other_names_are_named(tmp_path):
    here = f"binaries/{archive.platform_folder(2)}"
    file = packed(tmp_path / "a.fmu", (f"{here}/other{SUFFIX}", b"x"), (f"{here}/libz{SUFFIX}", b"x"))
    text = refusal(file, cs.load_fmu)
    assert f"{here} holds libz{SUFFIX}, other{SUFFIX}, but its modelIdentifier is 'm'" in text
    assert "a.fmu" in text
    abroad = packed(tmp_path / "b.fmu", ("binaries/other64/other.so", b"x"), ("binaries/other64/other.txt", b"x"))
    assert "only for other64 (there as other.so)" in refusal(abroad, cs.load_fmu)


@pytest.mark.parametrize("kind", ["absolute", "above", "backslash", "nothing", "above all"])
def test_no_library_outside_the_archive_is_loaded(tmp_path, kind):
    """A real library lies outside, and leaves a file behind when it is loaded; nothing of it may run."""
    source = tmp_path / "evil.c"
    source.write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void)"
        f'{{ FILE *f = fopen("{tmp_path}/loaded", "w"); if (f) fclose(f); }}\n'
    )
    processes.run(["cc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / f"evil{SUFFIX}")], check=True)
    identifier = {
        "absolute": str(tmp_path / "evil"),
        "above": f"../../../../{tmp_path.name}/evil",
        "backslash": "..\\evil",
        "nothing": "",
        "above all": "..",
    }[kind]
    spelled = DESCRIPTION.replace('modelIdentifier="m"', f'modelIdentifier="{identifier}"')
    file = packed(tmp_path / "a.fmu", (f"binaries/{archive.platform_folder(2)}/x", b""), description=spelled)
    text = refusal(file, cs.load_fmu)
    assert "a.fmu" in text
    assert "modelIdentifier" in text
    with pytest.raises(cs.errors.SetupError, match="model identifier"):
        archive.library(archive.unpack(file), 2, identifier)
    assert not (tmp_path / "loaded").exists()


def test_the_file_that_was_asked_for_is_named(tmp_path):
    """Two files with one content share a folder; each is named by its own name."""
    old = DESCRIPTION.replace('"2.0"', '"4.0"')
    for name in ("first.fmu", "second.fmu"):
        file = packed(tmp_path / "made.fmu", description=old).rename(tmp_path / name)
        assert f"{name}': FMI 4.0 is not supported" in refusal(file, cs.load_fmu)
        assert f"{name}': FMI 4.0 is not supported" in refusal(file, cs.fmi.inspect_fmu)


def test_drafts_of_the_standard_are_named(tmp_path):
    """Their description can be looked at, but their library must not be called."""
    file = packed(tmp_path / "draft.fmu", description=DESCRIPTION.replace('"2.0"', '"3.0-beta.3"'))
    text = refusal(file, cs.load_fmu)
    assert "draft.fmu" in text
    assert "FMI 3.0-beta.3, a draft whose functions differ from those of FMI 3.0" in text
    assert "3.0-beta.3, a draft" in cs.fmi.inspect_fmu(file).remarks[0]
