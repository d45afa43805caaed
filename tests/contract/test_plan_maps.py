"""The flat index maps of a plan are one to one: every number has one place, and every input exactly one source."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cosolve as cs

sizes = st.sampled_from([None, None, None, 1, 2, 3])


class Box(cs.Subsystem):
    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs


def length(size):
    return 1 if size is None else size


def ports(prefix, drawn):
    return [f"{prefix}{k}" if size is None else (f"{prefix}{k}", size) for k, size in enumerate(drawn)]


@st.composite
def systems(draw):
    """A random system and, independently of the plan, what each input must be: a function of (y by port, z by name)."""
    shapes = [
        (draw(st.lists(sizes, max_size=4)), draw(st.lists(sizes, min_size=1, max_size=4)))
        for _ in range(draw(st.integers(1, 5)))
    ]
    names = draw(st.permutations([f"s{i}" for i in range(len(shapes))]))
    system = cs.System({n: Box(ports("u", i), ports("y", o)) for n, (i, o) in zip(names, shapes, strict=True)})
    outputs = {f"{n}.y{k}": s for n, (_, o) in zip(names, shapes, strict=True) for k, s in enumerate(o)}
    free = {f"{n}.u{k}": s for n, (i, _) in zip(names, shapes, strict=True) for k, s in enumerate(i)}
    expected = {}
    number = 0

    def pick():
        return draw(st.lists(st.sampled_from(sorted(outputs)), min_size=1, max_size=3))

    while free:
        target = draw(st.sampled_from(sorted(free)))
        size = free[target]
        alike = [t for t in sorted(free) if free[t] == size]
        kind = draw(st.sampled_from(["connect", "constant", "law", "factors", "equations"]))
        number += 1
        if kind == "connect":
            sources = [s for s in sorted(outputs) if length(outputs[s]) == length(size)]
            if not sources:
                continue
            source = draw(st.sampled_from(sources))
            group = draw(st.lists(st.sampled_from(alike), min_size=1, max_size=3, unique=True))
            system.connect(source, *group)
            for t in group:
                expected[t] = lambda y, z, s=source: y[s]
        elif kind == "constant":
            group, value = [target], np.arange(length(size)) + float(number)
            system.set(target, value if size is not None else value[0])
            expected[target] = lambda y, z, v=value: v
        elif kind == "law":
            group = draw(st.lists(st.sampled_from(sorted(free)), min_size=1, max_size=3, unique=True))
            of, inside = pick(), dict(free)
            offsets = dict(zip(group, np.arange(len(group)) * 10.0 + number, strict=True))

            def law(*values, group=group, offsets=offsets, inside=inside):
                total = sum(float(np.sum(v)) for v in values)
                return [
                    total + offsets[t] if inside[t] is None else total + offsets[t] + np.arange(inside[t])
                    for t in group
                ]

            system.law(group, law, of=of)
            for t in group:
                expected[t] = lambda y, z, t=t, of=of, o=offsets, n=length(inside[t]): (  # noqa: B008
                    sum(y[s].sum() for s in of) + o[t] + np.arange(n)
                )
        else:
            group = draw(st.lists(st.sampled_from(alike), min_size=1, max_size=3, unique=True))
            factors = {t: draw(st.sampled_from([1.0, -1.0, 2.5])) for t in group}
            of = pick()
            if kind == "factors":
                name = draw(st.sampled_from([None, f"force{number}"]))

                def one(*values, n=number, size=size):
                    total = sum(float(np.sum(v)) for v in values) + n
                    return total if size is None else total * np.arange(1, size + 1)

                system.law(factors, one, of=of, name=name)
                for t, f in factors.items():
                    expected[t] = lambda y, z, f=f, of=of, n=number, m=length(size): (  # noqa: B008
                        f * (sum(y[s].sum() for s in of) + n) * np.arange(1, m + 1)
                    )
            else:
                unknown = f"lam{number}"
                system.equations({unknown: factors}, lambda lam, *values: lam, of=of)
                for t, f in factors.items():
                    expected[t] = lambda y, z, f=f, name=unknown: f * z[name]
        for t in group:
            del free[t]
    return system, expected


def partition(slices, total):
    covered = np.zeros(total, dtype=int)
    for part in slices:
        covered[part] += 1
    return (covered == 1).all() and [s.start for s in slices] == sorted(s.start for s in slices)


@settings(max_examples=120)
@given(systems(), st.randoms(use_true_random=False))
def test_maps_are_bijections(case, random):
    system, expected = case
    plan = system.plan()
    # slices partition the flat vectors, labels and indices are one to one
    assert partition(plan.u_slices, plan.n_u)
    assert partition(plan.y_slices, plan.n_y)
    u_labels = [plan.u_label(k) for k in range(plan.n_u)]
    y_labels = [plan.y_label(k) for k in range(plan.n_y)]
    for labels in (u_labels, y_labels, plan.z_labels):
        assert len(set(labels)) == len(labels)
    assert len(plan.z_labels) == plan.n_z
    for name, part, group in zip(plan.names, plan.y_slices, plan.output_ports, strict=True):
        assert y_labels[part] == [f"{name}.{label}" for label in group.labels()]
    assert [plan.names[i] for i in plan.y_owner] == [label.split(".")[0] for label in y_labels]
    # every row of the residual belongs to exactly one connection, law or equation
    rows = np.concatenate([plan.copy_rows, *(block.rows for block in plan.blocks)]).astype(int)
    assert sorted(rows) == list(range(plan.n_z))
    assert partition([part for part, _ in plan.z_ports.values()], plan.n_z)
    # every input has exactly one source, or is constant
    constant = plan.u_source < 0
    assert (plan.u_source < plan.n_z).all()
    assert (plan.u_factor[constant] == 0).all()
    assert (plan.u_offset[~constant] == 0).all()
    assert (plan.u_factor[~constant] != 0).all()
    # scatter and gather: what the inputs must be, from the description alone
    y = np.array([random.uniform(-1, 1) for _ in range(plan.n_y)])
    z = plan.evaluate(y, np.array([random.uniform(-1, 1) for _ in range(plan.n_z)]))
    u = plan.inputs(z)
    by_port = {}
    for name, part, group in zip(plan.names, plan.y_slices, plan.output_ports, strict=True):
        for port in group:
            by_port[f"{name}.{port.name}"] = y[part][group.slice(port.name)]
    unknowns = {name: z[part] for name, (part, _) in plan.z_ports.items()}
    for name, part, group in zip(plan.names, plan.u_slices, plan.input_ports, strict=True):
        for port in group:
            want = np.broadcast_to(expected[f"{name}.{port.name}"](by_port, unknowns), (port.length,))
            np.testing.assert_allclose(u[part][group.slice(port.name)], want, rtol=1e-14, atol=1e-14)
    # per subsystem, and through the matrices B_i, it is the same
    for i, part in enumerate(plan.u_slices):
        assert np.array_equal(plan.inputs(z, i), u[part])
        through = plan.by_variables(i, np.eye(part.stop - part.start)) @ z[plan.reads(i)] + plan.u_offset[part]
        np.testing.assert_allclose(through, u[part], rtol=1e-14, atol=1e-14)
    # and the residual vanishes exactly where z = f(y)
    residual = plan.residual(z, y)
    implicit = np.concatenate([np.zeros(0, int), *(b.rows for b in plan.blocks if b.implicit)]).astype(int)
    explicit = np.setdiff1d(np.arange(plan.n_z), implicit)
    assert (residual[explicit] == 0).all()
    assert np.array_equal(residual[implicit], z[implicit])


@settings(max_examples=40)
@given(systems())
def test_compiling_twice_gives_the_same_plan(case):
    system, _ = case
    first = system.plan()
    system._plan = None
    second = system.plan()
    assert first.z_labels == second.z_labels
    for name in ("u_source", "u_factor", "u_offset", "copy_rows", "copy_from", "z_nominal", "z_initial"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
