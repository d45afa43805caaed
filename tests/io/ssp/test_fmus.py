"""SSPs of real FMUs: ten of them in loops under every family, written and read back, run from the command line."""

import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
from tests import processes
from tests.fmu.build import fmu
from tests.io.ssp.structure import bound, component, connection, description, real

import cosolve as cs
from cosolve.io.ssp.flatten import Affine

COUNT = 10
INPUTS = {"left_x": "m", "left_v": "m/s", "right_x": "m", "right_v": "m/s"}
SOFT = {"c": 1.0, "d": 0.1, "ck": 5.0, "dk": 0.2}
FAMILIES = [cs.Jacobi(degree=1), cs.GaussSeidel(degree=1), cs.SemiImplicit(degree=1), cs.Implicit(degree=1, tol=1e-9)]


def ring(path, models):
    """A ring of masses, each coupled to both neighbours: every element is in loops with two others."""
    names = [f"m{k}" for k in range(len(models))]
    elements = "".join(
        component(name, INPUTS, {"x": "m", "v": "m/s"}, source=f"resources/{model.stem}.fmu")
        for name, model in zip(names, models, strict=True)
    )
    links = "".join(
        connection(f"{names[(k + side) % COUNT]}.{port}", f"m{k}.{where}_{port}")
        for k in range(COUNT)
        for where, side in (("left", -1), ("right", 1))
        for port in ("x", "v")
    )
    values = "".join(real(f"m{k}.{p}", v) for k in range(COUNT) for p, v in SOFT.items())
    values += "".join(real(f"m{k}.x", float(np.sin(k))) for k in range(COUNT))
    text = description(
        f'<ssd:System name="ring"><ssd:Elements>{elements}</ssd:Elements><ssd:Connections>{links}</ssd:Connections>'
        f"{bound(values)}</ssd:System>",
        '<ssd:DefaultExperiment startTime="0" stopTime="0.2"/>',
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("SystemStructure.ssd", text)
        for model in set(models):
            file.write(model, f"resources/{model.stem}.fmu")
    return path


def by_hand(fmi):
    """The same ring built with `load_fmu` and `connect`."""
    link = fmu("mass_link", fmi)
    system = cs.System(
        {f"m{k}": cs.load_fmu(link, parameters=SOFT, start={"x": float(np.sin(k))}) for k in range(COUNT)}
    )
    for k in range(COUNT):
        for port in ("x", "v"):
            system.connect(f"m{k}.{port}", f"m{(k + 1) % COUNT}.left_{port}", f"m{(k - 1) % COUNT}.right_{port}")
    return system


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", FAMILIES, ids=lambda m: m.name)
def test_ten_fmus_in_loops_run_under_every_family(method, fmi, tmp_path):
    path = ring(tmp_path / "ring.ssp", [fmu("mass_link", fmi)] * COUNT)
    described = cs.fmi.read_ssp(path, method=method, step=0.01)
    found = described.run()
    assert found.t[-1] == 0.2
    expected = cs.simulate(by_hand(fmi), t_end=0.2, method=method, step=0.01)
    for name in (f"m{k}.{port}" for k in range(COUNT) for port in ("x", "v")):
        assert np.abs(found[name] - expected[name]).max() < 1e-12
    assert np.abs(found["m3.x"] - found["m3.x"][0]).max() > 1e-3  # it moves


def test_without_rollback_implicit_families_are_refused_by_name(tmp_path):
    models = [fmu("mass_link", 2)] * (COUNT - 1)
    stuck = tmp_path / "mass_stuck.fmu"
    with zipfile.ZipFile(fmu("mass_link", 2)) as source, zipfile.ZipFile(stuck, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "modelDescription.xml":
                assert b'canGetAndSetFMUstate="true"' in data
                data = data.replace(b'canGetAndSetFMUstate="true"', b'canGetAndSetFMUstate="false"')
                data = data.replace(b'canSerializeFMUstate="true"', b'canSerializeFMUstate="false"')
            target.writestr(entry, data)
    path = ring(tmp_path / "ring.ssp", [*models, stuck])
    for method in (cs.SemiImplicit(degree=1), cs.Implicit(degree=1)):
        with pytest.raises(
            cs.errors.CapabilityError, match=r"'m9' \(CoSimulationFmu\) has none; .* use Jacobi or GaussSeidel"
        ):
            cs.fmi.read_ssp(path, method=method, step=0.01).run()
    assert isinstance(cs.fmi.read_ssp(path).options.method, cs.Jacobi)  # chosen where nothing is said
    assert cs.fmi.read_ssp(path, step=0.01).run().finished


def pair(drives):
    """A mass with a spring that a second mass follows; a linear law turns its force into another one."""
    one = cs.load_fmu(fmu("mass_spring", 3), parameters=SOFT, start={"x": 1.0})
    two = cs.load_fmu(fmu("mass_force", 3), parameters={"c": 2.0, "d": 0.3}, start={"v": 0.5})
    system = cs.System({"one": one, "two": two})
    system.connect("two.x", "one.x1")
    system.set("one.v1", 0.25)
    system.law(drives, Affine(-0.5, 0.1), of="one.F", jacobian=Affine(-0.5, 0.1).jacobian)
    return system


def test_a_written_system_reads_back_to_the_same_run(tmp_path):
    method, step = (
        cs.Implicit(degree=2, tol=1e-9, corrector=cs.IqnIls(reuse=2)),
        cs.Adaptive(rtol=1e-4, first_step=1e-3),
    )
    path = cs.fmi.write_ssp(pair("two.f"), tmp_path / "pair.ssp", method=method, step=step, t_end=0.5)
    described = cs.fmi.read_ssp(path)
    assert repr(described.options.method) == repr(method)
    assert described.options.step == step
    found, expected = described.run(), cs.simulate(pair("two.f"), t_end=0.5, method=method, step=step)
    assert (found.t == expected.t).all()
    for name in ("one.x", "one.F", "two.x", "two.v"):
        assert (found[name] == expected[name]).all()
    again = cs.fmi.write_ssp(described.system, tmp_path / "again.ssp", method=method, step=step, t_end=0.5)
    assert _structure(again) == _structure(path)


@pytest.mark.parametrize(
    "given",
    [
        {"method": cs.Jacobi(1), "step": 0.01},
        {"method": cs.Jacobi(1), "rtol": 1e-4},
        {"step": 0.02, "rtol": 1e-5},
        {"rtol": 1e-6},
        {"method": "auto"},
    ],
    ids=lambda given: "+".join(given),
)
def test_what_is_given_of_a_run_is_kept_and_what_is_open_stays_open(tmp_path, given):
    described = cs.fmi.read_ssp(cs.fmi.write_ssp(pair("two.f"), tmp_path / "pair.ssp", **given))
    assert repr(described.options.method) == repr(None if given.get("method") == "auto" else given.get("method"))
    assert described.options.step == given.get("step")
    assert described.options.rtol == (1e-4 if given.get("method") == "auto" else given.get("rtol"))


def test_the_factor_of_a_law_becomes_part_of_the_transformation(tmp_path):
    """The coupling variable itself is another one then, so the numbers agree up to rounding."""
    method = cs.SemiImplicit(degree=1)
    path = cs.fmi.write_ssp(pair({"two.f": -2.0}), tmp_path / "pair.ssp", method=method, step=0.01, t_end=0.5)
    found, expected = (
        cs.fmi.read_ssp(path).run(),
        cs.simulate(pair({"two.f": -2.0}), t_end=0.5, method=method, step=0.01),
    )
    assert np.abs(found["two.x"] - expected["two.x"]).max() < 1e-12


def _structure(path):
    with zipfile.ZipFile(path) as file:
        root = ElementTree.fromstring(file.read("SystemStructure.ssd"))
    return sorted(
        (element.tag, *sorted((k, v) for k, v in element.attrib.items() if v != path.stem)) for element in root.iter()
    )


def test_what_is_written_is_what_the_standard_asks_for(tmp_path):
    link = fmu("mass_force", 2)
    system = cs.System({"a": cs.load_fmu(link, parameters={"m": 2.0}), "b": cs.load_fmu(link)})
    system.set("b.f", 3.0)
    system.set("a.f", 1.5)
    path = cs.fmi.write_ssp(system, tmp_path / "two.ssp", method=cs.Jacobi(degree=2), step=0.1, t_end=2.0)
    with zipfile.ZipFile(path) as file:
        assert sorted(file.namelist()) == ["SystemStructure.ssd", f"resources/{link.stem}.fmu"]  # one copy for both
        root = ElementTree.fromstring(file.read("SystemStructure.ssd"))
    ssd, ssc = (f"{{http://ssp-standard.org/SSP1/SystemStructure{part}}}" for part in ("Description", "Common"))
    ssv = "{http://ssp-standard.org/SSP1/SystemStructureParameterValues}"
    assert root.tag == f"{ssd}SystemStructureDescription"
    assert root.attrib == {"version": "1.0", "name": "two"}
    assert [child.tag for child in root] == [f"{ssd}System", f"{ssd}DefaultExperiment", f"{ssd}Annotations"]
    top = root[0]
    assert [child.tag for child in top] == [f"{ssd}ParameterBindings", f"{ssd}Elements", f"{ssd}Connections"]
    constants = {p.get("name"): p[0].get("value") for p in top[0].iter(f"{ssv}Parameter")}
    assert constants == {"b.f": "3.0", "a.f": "1.5"}
    first = top[1][0]
    assert first.attrib == {
        "name": "a",
        "type": "application/x-fmu-sharedlibrary",
        "source": f"resources/{link.stem}.fmu",
    }
    connectors = {c.get("name"): c.get("kind") for c in first.iter(f"{ssd}Connector")}
    assert connectors == {"f": "input", "x": "output", "v": "output"}
    assert {p.get("name"): p[0].get("value") for p in first.iter(f"{ssv}Parameter")} == {"m": "2.0"}
    note = root[2][0]
    assert note.tag == f"{ssc}Annotation"
    assert note.get("type") == "org.cosolve.run"
    assert note[0].attrib == {"method": '{"name": "jacobi", "degree": 2}', "step": "0.1"}


def test_arrays_need_version_2(tmp_path):
    field = cs.load_fmu(fmu("array", 3))
    system = cs.System({"field": field})
    vectors = [port for port in (*field.inputs, *field.outputs) if port.size is not None]
    assert vectors
    for port in field.inputs:
        system.set(f"field.{port.name}", 0.5)
    options = {"method": cs.Jacobi(degree=0), "step": 0.1, "t_end": 0.5}
    with pytest.raises(cs.errors.SetupError, match=r"is an array, which SSP 1\.0 has not; write version='2\.0'"):
        cs.fmi.write_ssp(system, tmp_path / "field.ssp", **options)
    described = cs.fmi.read_ssp(cs.fmi.write_ssp(system, tmp_path / "field.ssp", version="2.0", **options))
    name = f"field.{field.outputs[0].name}"
    assert (described.run()[name] == cs.simulate(system, **options)[name]).all()


def test_what_cannot_be_written_is_refused(tmp_path):
    system = cs.System({"a": cs.load_fmu(fmu("mass_force", 2)), "b": cs.load_fmu(fmu("mass_force", 2))})
    system.law({"a.f": 1, "b.f": -1}, lambda x, y: 5 * (y - x), of=["a.x", "b.x"])
    with pytest.raises(cs.errors.SetupError, match=r"the law for a\.f, b\.f cannot be written"):
        cs.fmi.write_ssp(system, tmp_path / "x.ssp", method=cs.Jacobi(), step=0.1)
    with pytest.raises(cs.errors.SetupError, match=r"must end in \.ssp"):
        cs.fmi.write_ssp(system, tmp_path / "x.zip", method=cs.Jacobi(), step=0.1)
    assert not list(tmp_path.iterdir())


def test_the_command_line_runs_an_ssp(tmp_path):
    ring(tmp_path / "ring.ssp", [fmu("mass_link", 2)] * COUNT)
    command = [sys.executable, "-m", "cosolve.cli", "run", "ring.ssp", "--method", "gauss-seidel:1", "--step", "0.01"]
    done = processes.run([*command, "--t-end", "0.1"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "GaussSeidel(1) finished: 11 macro points" in done.stdout
    assert cs.load_result(tmp_path / "result.h5")["m3.x"].shape == (11,)


def test_a_python_subsystem_takes_part_as_the_fmu_that_stands_for_it(tmp_path):
    """Exported, written into an SSP, and run from there in another process: the numbers of the original."""
    pytest.importorskip("pythonfmu")
    (tmp_path / "spring.py").write_text(
        "import cosolve as cs\n"
        "def spring():\n"
        "    return cs.Static(lambda t, u: -40.0 * u, inputs=['x'], outputs=['force'])\n"
    )
    standing = cs.fmi.export_fmu(f"{tmp_path}/spring.py:spring", tmp_path / "spring.fmu")
    mass = cs.load_fmu(fmu("mass_force", 2), parameters=SOFT, start={"x": 1.0})
    spring = cs.Static(lambda t, u: -40.0 * u, inputs=["x"], outputs=["force"])
    system = cs.System({"mass": mass, "spring": spring})
    system.connect("mass.x", "spring.x")
    system.connect("spring.force", "mass.f")
    method = cs.GaussSeidel(degree=0, order=["mass"])
    options = {"method": method, "step": 0.01, "t_end": 0.3}
    cs.fmi.write_ssp(system, tmp_path / "pair.ssp", fmus={"spring": standing}, **options)
    script = "import cosolve as cs; print([float(v).hex() for v in cs.fmi.read_ssp('pair.ssp').run()['mass.x']])"
    done = processes.run([sys.executable, "-c", script], cwd=tmp_path)
    here = [float(v).hex() for v in cs.simulate(system, **options)["mass.x"]]
    assert done.stdout.strip() == str(here), done.stderr


def test_parameters_may_lie_inside_the_fmu(tmp_path):
    values = (
        '<ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" '
        f'name="p"><ssv:Parameters>{real("x", 0.75)}</ssv:Parameters></ssv:ParameterSet>'
    )
    with zipfile.ZipFile(fmu("mass_force", 2)) as source, zipfile.ZipFile(tmp_path / "own.fmu", "w") as target:
        for entry in source.infolist():
            target.writestr(entry, source.read(entry))
        target.writestr("resources/start.ssv", values)
    binding = (
        '<ssd:ParameterBindings><ssd:ParameterBinding source="resources/start.ssv" sourceBase="component"/>'
        "</ssd:ParameterBindings>"
    )
    for uri, refused in (("resources/start.ssv", ""), ("../own.fmu", "outside the SSP"), ("gone.ssv", "no such file")):
        own = component("m", {"f": "N"}, {"x": "m"}, binding.replace("resources/start.ssv", uri), "own.fmu")
        (tmp_path / "top.ssd").write_text(
            description(f'<ssd:System name="top"><ssd:Elements>{own}</ssd:Elements></ssd:System>')
        )
        if refused:
            with pytest.raises(cs.errors.SetupError, match=refused):
                cs.fmi.read_ssp(tmp_path / "top.ssd")
        else:
            assert cs.fmi.read_ssp(tmp_path / "top.ssd", step=0.1, t_end=0.1).run()["m.x"][0] == 0.75
