"""Reader of configuration files for solvers adapted to preCICE 3: what they say, checked, as plain descriptions.

Every mistake is one sentence with file and line. Whatever is not offered is refused there too, never ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from cosolve.basics.wording import suggest
from cosolve.errors import SetupError
from cosolve.precice.tags import REQUIRED, TAGS, Attribute


@dataclass
class Element:
    """A tag of the file with its attributes, already read as what they mean."""

    name: str
    key: str
    line: int
    values: dict[str, Any] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    inside: list[Element] = field(default_factory=list)

    def __getitem__(self, attribute: str) -> Any:
        return self.values[attribute]

    def all(self, *names: str) -> list[Element]:
        """The tags of these names inside."""
        return [element for element in self.inside if element.name in names]


@dataclass(frozen=True)
class Data:
    """A quantity: scalar or vector, and the degree of its waveform."""

    name: str
    vector: bool
    degree: int
    bounds: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class MeshUse:
    """A mesh as one participant sees it."""

    name: str
    provided: bool
    sender: str = ""
    direct: bool = False


@dataclass(frozen=True)
class MappingTag:
    """A mapping of a participant; `source` or `target` is empty where it is made on the spot."""

    kind: str
    direction: str
    source: str
    target: str
    constraint: str
    options: dict[str, Any]
    basis: str = ""
    basis_options: dict[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True)
class Watch:
    """A watch point (with coordinates) or a watch integral."""

    name: str
    mesh: str
    coordinates: tuple[float, ...] | None
    scaled: bool = True


@dataclass(frozen=True)
class Export:
    """Files with meshes and data."""

    kind: str
    directory: str
    every: int
    every_iteration: bool


@dataclass(frozen=True)
class Action:
    """What happens to data of a mesh after they were written or before they are read."""

    kind: str
    mesh: str
    reading: bool
    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class ParticipantTag:
    """One participant."""

    name: str
    meshes: dict[str, MeshUse]
    written: tuple[tuple[str, str], ...]  # (mesh, data)
    read: tuple[tuple[str, str], ...]
    mappings: tuple[MappingTag, ...]
    watches: tuple[Watch, ...]
    exports: tuple[Export, ...]
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Exchange:
    """Data on a mesh that go from one participant to another."""

    data: str
    mesh: str
    sender: str
    receiver: str
    initial: bool
    substeps: bool


@dataclass(frozen=True)
class Measure:
    """When data count as converged."""

    kind: str  # absolute, relative, residual-relative, absolute-or-relative
    data: str
    mesh: str
    limit: float
    relative_limit: float = 0.0
    suffices: bool = False
    strict: bool = False


@dataclass(frozen=True)
class Acceleration:
    """How the next iterate is found."""

    kind: str  # constant, aitken, IQN-ILS, IQN-IMVJ
    relaxation: float
    data: tuple[tuple[str, str], ...] = ()  # (mesh, data); none: all
    enforce: bool = False
    columns: int = 100
    reuse: int = 10
    filter: str = "QR3"
    limit: float = 1e-2
    violation: str = "ignore"


@dataclass(frozen=True)
class SchemeTag:
    """One coupling scheme; `participants` begin with the first, and end with the one that decides."""

    kind: str  # serial-explicit, ...
    participants: tuple[str, ...]
    window: float  # 0: the first participant chooses
    max_time: float | None
    max_windows: int | None
    exchanges: tuple[Exchange, ...]
    max_iterations: int | None = None
    min_iterations: int = 1
    measures: tuple[Measure, ...] = ()
    acceleration: Acceleration | None = None
    line: int = 0

    @property
    def implicit(self) -> bool:
        """True where windows are repeated."""
        return self.kind in ("serial-implicit", "parallel-implicit", "multi")

    @property
    def serial(self) -> bool:
        """True where the second runs after the first."""
        return self.kind.startswith("serial")


@dataclass(frozen=True)
class Configuration:
    """All that a file says; `remarks` is what is done otherwise than it asks."""

    file: str
    data: dict[str, Data]
    meshes: dict[str, tuple[int, tuple[str, ...]]]  # dimensions, data
    participants: dict[str, ParticipantTag]
    schemes: tuple[SchemeTag, ...]
    remarks: tuple[str, ...] = ()

    def components(self, data: str, mesh: str) -> int:
        """How many numbers per point."""
        return self.meshes[mesh][0] if self.data[data].vector else 1


def read_configuration(path: str | Path) -> Configuration:
    r"""The configuration in a file.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "config.xml"
    >>> _ = file.write_text("<precice-configuration>\n  <participants/>\n</precice-configuration>")
    >>> read_configuration(file)
    Traceback (most recent call last):
    ...
    cosolve.errors.SetupError: config.xml, line 2: <participants> has no place inside <precice-configuration>
    """
    file = Path(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise SetupError(f"{file}: cannot be read ({error.strerror})") from None
    return Reader(file.name, text).configuration


class Reader:
    """Reads one file; `configuration` is what it says."""

    def __init__(self, name: str, text: bytes) -> None:
        self.name = name
        self.remarks: list[str] = []
        self.root = self._parsed(text)
        self.configuration = self._understood()

    def refuse(self, line: int, why: str) -> NoReturn:
        """A sentence with file and line."""
        raise SetupError(f"{self.name}, line {line}: {why}")

    # -- the text

    def _parsed(self, text: bytes) -> Element:
        parser = expat.ParserCreate()
        stack: list[Element] = []
        roots: list[Element] = []

        def opened(name: str, attributes: dict[str, str]) -> None:
            line = parser.CurrentLineNumber
            element = self._element(name, attributes, line, stack)
            (stack[-1].inside if stack else roots).append(element)
            stack.append(element)

        def closed(name: str) -> None:
            stack.pop()

        def words(data: str) -> None:
            if data.strip():
                self.refuse(parser.CurrentLineNumber, f"the text '{data.strip()[:30]}' has no place here")

        def declared(*_: Any) -> None:
            self.refuse(parser.CurrentLineNumber, "a document type has no place here; remove <!DOCTYPE ...>")

        parser.StartElementHandler, parser.EndElementHandler = opened, closed
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = words, declared
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            self.refuse(error.lineno, f"is no well-formed XML ({expat.errors.messages[error.code]})")
        return roots[0]

    def _element(self, name: str, attributes: dict[str, str], line: int, stack: list[Element]) -> Element:
        if not stack:
            if name in ("solver-interface", "configuration"):
                self.refuse(line, f"<{name}> is a configuration of version 2; bring it to version 3 first")
            if name != "precice-configuration":
                self.refuse(line, f"the outermost tag is <precice-configuration>, not <{name}>")
            key = name
        else:
            outer = stack[-1]
            if name == "solver-interface":
                self.refuse(line, "<solver-interface> belongs to version 2; bring the file to version 3 first")
            allowed = TAGS[outer.key].inside
            short = outer.key.partition(":")[0]
            key = next((k for k in (f"{outer.key}/{name}", f"{short}/{name}", name) if k in allowed), "")
            if not key:
                known = [k.rpartition("/")[2] for k in allowed]
                if name in TAGS or not known:
                    self.refuse(line, f"<{name}> has no place inside <{outer.name}>")
                self.refuse(line, f"<{name}> is unknown inside <{outer.name}>; {suggest(name, known)}")
        tag = TAGS[key]
        if tag.refused:
            self.refuse(line, f"<{name}> {tag.refused}")
        element = Element(name, key, line, given=frozenset(attributes))
        for given, text in attributes.items():
            if given not in tag.attributes:
                known = list(tag.attributes)
                hint = f"; {suggest(given, known)}" if known else "; it takes none"
                self.refuse(line, f"<{name}> has no attribute '{given}'{hint}")
            element.values[given] = self._value(text, tag.attributes[given], f"<{name} {given}=...>", line)
        for wanted, attribute in tag.attributes.items():
            if wanted not in element.values:
                if attribute.default is REQUIRED:
                    self.refuse(line, f"<{name}> needs the attribute '{wanted}'")
                element.values[wanted] = attribute.default
        return element

    def _value(self, text: str, attribute: Attribute, where: str, line: int) -> Any:
        word = text.strip()
        if attribute.choices and word not in attribute.choices:
            self.refuse(line, f"{where}: '{word}' is none of {', '.join(attribute.choices)}")
        if attribute.kind == "flag":
            flags = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False,
                     "off": False}  # fmt: skip
            if word.lower() not in flags:
                self.refuse(line, f"{where}: '{word}' is neither true nor false")
            return flags[word.lower()]
        if attribute.kind == "text":
            return word if where.find("format") < 0 else text
        try:
            return int(word) if attribute.kind == "whole" else float(word)
        except ValueError:
            what = "whole number" if attribute.kind == "whole" else "number"
            self.refuse(line, f"{where}: '{word}' is no {what}")

    # -- what it means

    def _understood(self) -> Configuration:
        self.data = self._named("data:scalar", "data:vector", make=self._data)
        self.meshes: dict[str, tuple[int, tuple[str, ...]]] = self._named("mesh", make=self._mesh)
        self.participants: dict[str, ParticipantTag] = {}
        for element in self.root.all("participant"):
            if element["name"] in self.participants:
                self.refuse(element.line, f"there are two participants called '{element['name']}'")
            self.participants[element["name"]] = self._participant(element)
        self._check_received()
        names = list(self.participants)
        for element in self.root.inside:
            if element.name.startswith("m2n:"):
                for end in ("acceptor", "connector"):
                    self._known(element[end], names, "participant", element.line)
                if element.name != "m2n:sockets":
                    self.remarks.append(f"line {element.line}: <{element.name}>: local sockets are used")
        schemes = tuple(
            self._scheme(element) for element in self.root.inside if element.name.startswith("coupling-scheme:")
        )
        self._check_schemes(schemes)
        return Configuration(self.name, self.data, self.meshes, self.participants, schemes, tuple(self.remarks))

    def _named(self, *tags: str, make: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for element in self.root.all(*tags):
            if element["name"] in found:
                self.refuse(element.line, f"there are two <{element.name}> called '{element['name']}'")
            found[element["name"]] = make(element)
        return found

    def _known(self, name: str, known: Any, what: str, line: int) -> None:
        if name not in known:
            listed = suggest(name, list(known)) if known else "there is none"
            self.refuse(line, f"there is no {what} called '{name}'; {listed}")

    def _data(self, element: Element) -> Data:
        degree = element["waveform-degree"]
        if not 0 <= degree <= 3:
            self.refuse(element.line, f"<{element.name} waveform-degree=...>: {degree} is not from 0 to 3")
        bounds = (element["lower-bound"], element["upper-bound"])
        return Data(element["name"], element.name == "data:vector", degree, bounds)

    def _mesh(self, element: Element) -> tuple[int, tuple[str, ...]]:
        if element["dimensions"] not in (2, 3):
            self.refuse(element.line, f"<mesh>: dimensions is 2 or 3, not {element['dimensions']}")
        used = []
        for use in element.all("use-data"):
            self._known(use["name"], self.data, "data", use.line)
            used.append(use["name"])
        return element["dimensions"], tuple(used)

    def _participant(self, element: Element) -> ParticipantTag:
        meshes: dict[str, MeshUse] = {}
        for tag in element.all("provide-mesh", "receive-mesh"):
            self._known(tag["name"], self.meshes, "mesh", tag.line)
            if tag["name"] in meshes:
                self.refuse(tag.line, f"mesh '{tag['name']}' is named twice by participant '{element['name']}'")
            if tag.name == "provide-mesh":
                meshes[tag["name"]] = MeshUse(tag["name"], True)
            else:
                direct = bool(tag["api-access"] or tag["direct-access"])
                meshes[tag["name"]] = MeshUse(tag["name"], False, tag["from"], direct)
        pairs: dict[str, list[tuple[str, str]]] = {"write-data": [], "read-data": []}
        for tag in element.all("write-data", "read-data"):
            self._on_mesh(tag, tag["name"], tag["mesh"], meshes)
            use = meshes[tag["mesh"]]
            if not use.provided and not use.direct:
                self.refuse(
                    tag.line,
                    f"<{tag.name}>: mesh '{tag['mesh']}' is received; open it with api-access=\"true\", or use a mesh "
                    f"that '{element['name']}' provides and a mapping",
                )
            if tag.name == "read-data" and tag["waveform-degree"] is not None:
                old = self.data[tag["name"]]
                self.data[tag["name"]] = Data(old.name, old.vector, tag["waveform-degree"], old.bounds)
            pairs[tag.name].append((tag["mesh"], tag["name"]))
        mappings = tuple(
            self._mapping(tag, meshes, element["name"]) for tag in element.inside if tag.name.startswith("mapping:")
        )
        watches = tuple(self._watch(tag, meshes) for tag in element.all("watch-point", "watch-integral"))
        for tag in element.inside:
            if tag.name.startswith("export:") and (tag["update-series"] or tag["normals"]):
                self.remarks.append(f"line {tag.line}: <{tag.name}>: neither series nor normals are written")
        exports = tuple(
            Export(tag.name[7:], tag["directory"], tag["every-n-time-windows"], tag["every-iteration"])
            for tag in element.inside
            if tag.name.startswith("export:")
        )
        both = (pairs["write-data"], pairs["read-data"])
        actions = tuple(self._action(tag, meshes, *both) for tag in element.inside if tag.name.startswith("action:"))
        return ParticipantTag(
            element["name"], meshes, tuple(pairs["write-data"]), tuple(pairs["read-data"]), mappings, watches,
            exports, actions,
        )  # fmt: skip

    def _on_mesh(self, tag: Element, data: str, mesh: str, meshes: dict[str, MeshUse]) -> None:
        self._known(mesh, meshes, "mesh at this participant", tag.line)
        self._known(data, self.data, "data", tag.line)
        if data not in self.meshes[mesh][1]:
            self.refuse(tag.line, f"mesh '{mesh}' does not use data '{data}'; add <use-data name=\"{data}\" /> to it")

    def _mapping(self, tag: Element, meshes: dict[str, MeshUse], participant: str) -> MappingTag:
        direction, source, target = tag["direction"], tag["from"], tag["to"]
        if not source and not target:
            self.refuse(tag.line, f"<{tag.name}> needs 'from' and 'to'")
        on_the_spot = not source or not target
        for mesh in (source, target):
            if mesh:
                self._known(mesh, meshes, "mesh at this participant", tag.line)
        if on_the_spot:
            wanted = "to" if direction == "write" else "from"
            if not (target if direction == "write" else source):
                self.refuse(tag.line, f"<{tag.name}>: a {direction} mapping on the spot names its '{wanted}' only")
            rule = {"read": "consistent", "write": "conservative"}[direction]
            if tag["constraint"] != rule:
                self.refuse(tag.line, f"<{tag.name}>: a {direction} mapping on the spot is {rule}")
            if tag.name not in ("mapping:nearest-neighbor", "mapping:rbf-pum-direct", "mapping:rbf"):
                self.refuse(tag.line, f"<{tag.name}> does not work on the spot; use nearest-neighbor or rbf-pum-direct")
        else:
            own = source if direction == "write" else target
            if not meshes[own].provided:
                self.refuse(
                    tag.line,
                    f"<{tag.name}>: a {direction} mapping goes {'from' if direction == 'write' else 'to'} a mesh that "
                    f"'{participant}' provides",
                )
        kind = tag.name[8:]
        bases = [inner for inner in tag.inside if inner.name.startswith("basis-function:")]
        basis, options = "", {}
        if kind.startswith("rbf"):
            if len(bases) != 1:
                self.refuse(tag.line, f"<{tag.name}> needs one <basis-function:...>")
            else:
                basis, options = bases[0].name.partition(":")[2], bases[0].values
                if basis == "gaussian" and (options["shape-parameter"] is None) == (options["support-radius"] is None):
                    self.refuse(bases[0].line, f"<{bases[0].name}> needs shape-parameter or support-radius")
            if kind == "rbf-global-iterative":
                self.remarks.append(f"line {tag.line}: <{tag.name}>: the direct solver is used")
        if kind == "nearest-neighbor-gradient" and tag["constraint"] != "consistent":
            self.refuse(tag.line, f"<{tag.name}> is consistent only")
        return MappingTag(
            kind, direction, source, target, tag["constraint"], dict(tag.values), basis, options, tag.line
        )

    def _watch(self, tag: Element, meshes: dict[str, MeshUse]) -> Watch:
        self._known(tag["mesh"], meshes, "mesh at this participant", tag.line)
        if not meshes[tag["mesh"]].provided:
            self.refuse(tag.line, f"<{tag.name}>: mesh '{tag['mesh']}' is received; watch it where it is provided")
        if tag.name == "watch-integral":
            return Watch(tag["name"], tag["mesh"], None, tag["scale-with-connectivity"] is not False)
        try:
            place = tuple(float(word) for word in tag["coordinate"].replace(",", ";").split(";"))
        except ValueError:
            place = ()
        if len(place) != self.meshes[tag["mesh"]][0]:
            self.refuse(
                tag.line, f"<watch-point>: coordinate is {self.meshes[tag['mesh']][0]} numbers with ';' between them"
            )
        return Watch(tag["name"], tag["mesh"], place)

    def _action(
        self,
        tag: Element,
        meshes: dict[str, MeshUse],
        written: list[tuple[str, str]],
        read: list[tuple[str, str]],
    ) -> Action:
        sources = [inner["name"] for inner in tag.all("source-data")]
        targets = [inner["name"] for inner in tag.all("target-data")]
        if len(targets) != 1 or (tag.name == "action:summation" and not sources):
            self.refuse(tag.line, f"<{tag.name}> needs one <target-data>, and a summation <source-data>")
        for name in (*sources, *targets):
            self._on_mesh(tag, name, tag["mesh"], meshes)
        kind = tag.name[7:]
        reading = tag["timing"] == "read-mapping-post"
        known, word = (read, "read") if reading else (written, "written")
        for name in sources:
            if (tag["mesh"], name) not in known:
                self.refuse(tag.line, f"<{tag.name}>: data '{name}' are not {word} on mesh '{tag['mesh']}' here")
        return Action(kind, tag["mesh"], reading, tuple(sources), targets[0])

    def _check_received(self) -> None:
        for element in self.root.all("participant"):
            for tag in element.all("receive-mesh"):
                self._known(tag["from"], self.participants, "participant", tag.line)
                sent = self.participants[tag["from"]].meshes.get(tag["name"])
                if sent is None or not sent.provided:
                    self.refuse(tag.line, f"participant '{tag['from']}' does not provide mesh '{tag['name']}'")

    def _scheme(self, element: Element) -> SchemeTag:
        kind = element.name.partition(":")[2]
        line = element.line
        single: dict[str, Element] = {}
        for tag in element.inside:
            if tag.name in ("max-time", "max-time-windows", "time-window-size", "max-iterations", "min-iterations",
                            "participants") or tag.name.startswith("acceleration:"):  # fmt: skip
                name = "acceleration" if tag.name.startswith("acceleration:") else tag.name
                if name in single:
                    self.refuse(
                        tag.line,
                        f"<{element.name}> has two <{tag.name}>"
                        if tag.name == name
                        else f"<{element.name}> has two accelerations",
                    )
                single[name] = tag
        participants = self._of_scheme(element, kind, single)
        window, first_chooses = self._window(element, kind, single)
        exchanges = tuple(self._exchange(tag, participants, kind) for tag in element.all("exchange"))
        if not exchanges:
            self.refuse(line, f"<{element.name}> exchanges nothing; add <exchange ... />")
        measures = tuple(self._measure(tag, exchanges) for tag in element.inside if tag.name.endswith("-measure"))
        most = single["max-iterations"]["value"] if "max-iterations" in single else None
        least = single["min-iterations"]["value"] if "min-iterations" in single else 1
        implicit = kind in ("serial-implicit", "parallel-implicit", "multi")
        if implicit and most is None and not measures:
            self.refuse(line, f"<{element.name}> has neither a convergence measure nor <max-iterations>")
        if least < 1 or (most is not None and (most < 1 or most < least)):
            self.refuse(line, f"<{element.name}>: iterations are at least 1, and the most are not fewer than the least")
        scheme = SchemeTag(
            kind, participants, 0.0 if first_chooses else window,
            single["max-time"]["value"] if "max-time" in single else None,
            single["max-time-windows"]["value"] if "max-time-windows" in single else None,
            exchanges, most, least, measures, None, line,
        )  # fmt: skip
        if scheme.max_time is not None and scheme.max_time <= 0:
            self.refuse(single["max-time"].line, f"<max-time>: {scheme.max_time:g} is not above 0")
        if "acceleration" in single:
            acceleration = self._acceleration(single["acceleration"], scheme)
            scheme = SchemeTag(**{**vars(scheme), "acceleration": acceleration})
        return scheme

    def _of_scheme(self, element: Element, kind: str, single: dict[str, Element]) -> tuple[str, ...]:
        if kind != "multi":
            if "participants" not in single:
                self.refuse(element.line, f"<{element.name}> needs <participants first=... second=... />")
            pair = single["participants"]
            names: tuple[str, ...] = (pair["first"], pair["second"])
            line = pair.line
        else:
            listed = element.all("participant")
            control = [tag["name"] for tag in listed if tag["control"]]
            if len(control) != 1 or len(listed) < 2:
                self.refuse(element.line, "<coupling-scheme:multi> needs two participants or more, one with control")
            names = (*(tag["name"] for tag in listed if not tag["control"]), control[0])
            line = element.line
        for name in names:
            self._known(name, self.participants, "participant", line)
        if len(set(names)) < len(names):
            self.refuse(line, f"<{element.name}> names a participant twice")
        return names

    def _window(self, element: Element, kind: str, single: dict[str, Element]) -> tuple[float, bool]:
        if "time-window-size" not in single:
            self.refuse(element.line, f"<{element.name}> needs <time-window-size value=... />")
        tag = single["time-window-size"]
        if tag["method"] == "first-participant":
            if not kind.startswith("serial"):
                self.refuse(tag.line, "only serial schemes let the first participant choose the window")
            return 0.0, True
        if not tag["value"] > 0:
            self.refuse(tag.line, f"<time-window-size>: {tag['value']:g} is not above 0")
        return tag["value"], False

    def _exchange(self, tag: Element, participants: tuple[str, ...], kind: str) -> Exchange:
        self._known(tag["mesh"], self.meshes, "mesh", tag.line)
        self._known(tag["data"], self.data, "data", tag.line)
        for end in ("from", "to"):
            self._known(tag[end], participants, "participant of this scheme", tag.line)
            self._on_mesh(tag, tag["data"], tag["mesh"], self.participants[tag[end]].meshes)
        if tag["from"] == tag["to"]:
            self.refuse(tag.line, f"<exchange>: '{tag['from']}' would send to itself")
        sender = self.participants[tag["from"]]
        mapped = {m.target for m in sender.mappings if m.direction == "write"}
        if not any(data == tag["data"] for _, data in sender.written):
            self.refuse(tag.line, f"'{tag['from']}' does not write data '{tag['data']}'; add <write-data ... />")
        if (tag["mesh"], tag["data"]) not in sender.written and tag["mesh"] not in mapped:
            self.refuse(
                tag.line,
                f"'{tag['from']}' writes data '{tag['data']}' on another mesh and has no write mapping to "
                f"'{tag['mesh']}'",
            )
        degree = self.data[tag["data"]].degree
        substeps = tag["substeps"]
        implicit = kind in ("serial-implicit", "parallel-implicit", "multi")
        if substeps is None:
            substeps = implicit and degree > 0
        if degree == 0 and substeps:
            self.refuse(
                tag.line,
                f"data '{tag['data']}' have waveform-degree 0, which knows no substeps; set substeps=\"false\"",
            )
        if degree >= 2 and not substeps:
            self.refuse(tag.line, f"data '{tag['data']}' have waveform-degree {degree}, which needs substeps=\"true\"")
        return Exchange(tag["data"], tag["mesh"], tag["from"], tag["to"], tag["initialize"], substeps)

    def _measure(self, tag: Element, exchanges: tuple[Exchange, ...]) -> Measure:
        self._exchanged(tag, tag["data"], tag["mesh"], exchanges)
        kind = tag.name.removesuffix("-convergence-measure")
        if kind == "absolute-or-relative":
            limit, relative = tag["abs-limit"], tag["rel-limit"]
        else:
            limit, relative = tag["limit"], 0.0
        if (
            not limit > 0
            or relative < 0
            or ("relative" in kind and max(limit if kind != "absolute-or-relative" else relative, 0) > 1)
        ):
            self.refuse(tag.line, f"<{tag.name}>: its limit is above 0, and relative ones are at most 1")
        return Measure(kind, tag["data"], tag["mesh"], limit, relative, tag["suffices"], tag["strict"])

    def _exchanged(self, tag: Element, data: str, mesh: str, exchanges: tuple[Exchange, ...]) -> None:
        if not any(e.data == data and e.mesh == mesh for e in exchanges):
            self.refuse(tag.line, f"<{tag.name}>: data '{data}' on mesh '{mesh}' are not exchanged in this scheme")

    def _acceleration(self, tag: Element, scheme: SchemeTag) -> Acceleration:
        kind = tag.name.partition(":")[2]
        inner = {child.name: child for child in tag.inside if child.name != "data"}
        listed = tag.all("data")
        for child in listed:
            self._exchanged(child, child["name"], child["mesh"], scheme.exchanges)
            if child["scaling"] != 1.0:
                self.remarks.append(f"line {child.line}: scaling is not needed, data are balanced by their residuals")
        data = tuple((child["mesh"], child["name"]) for child in listed)
        if kind == "constant":
            if "relaxation" not in inner:
                self.refuse(tag.line, "<acceleration:constant> needs <relaxation value=... />")
            return Acceleration(kind, self._factor(inner["relaxation"]))
        if not data:
            self.refuse(tag.line, f"<{tag.name}> needs <data name=... mesh=... />")
        decided = {
            (e.mesh, e.data) for e in scheme.exchanges if not scheme.serial or e.sender == scheme.participants[1]
        }
        for child in listed:
            if (child["mesh"], child["name"]) not in decided:
                self.refuse(child.line, f"data '{child['name']}' come from the first participant, which a serial "
                                        "scheme does not accelerate")  # fmt: skip
        start = inner.get("initial-relaxation")
        factor = self._factor(start) if start else (0.5 if kind == "aitken" else 0.1)
        if kind == "aitken":
            return Acceleration(kind, factor, data)
        columns = inner["max-used-iterations"]["value"] if "max-used-iterations" in inner else (
            100 if kind == "IQN-ILS" else 20)  # fmt: skip
        reuse = inner["time-windows-reused"]["value"] if "time-windows-reused" in inner else (
            10 if kind == "IQN-ILS" else 0)  # fmt: skip
        if columns < 1 or reuse < 0:
            self.refuse(tag.line, f"<{tag.name}>: max-used-iterations is at least 1, time-windows-reused at least 0")
        self._note_balance(tag, inner)
        chosen = inner.get("filter")
        kind_of_filter, limit = (chosen["type"], chosen["limit"]) if chosen else ("QR3", 1e-2)
        return Acceleration(
            kind, factor, data, bool(start and start["enforce"]), columns, reuse, kind_of_filter, limit,
            tag["on-bound-violation"],
        )  # fmt: skip

    def _note_balance(self, tag: Element, inner: dict[str, Element]) -> None:
        """What a quasi-Newton acceleration asks for and does not get."""
        balance = inner.get("preconditioner")
        if balance is not None and (balance["type"] != "residual-sum" or balance["freeze-after"] != -1):
            self.remarks.append(
                f"line {balance.line}: <preconditioner>: data are balanced by the sum of their residuals"
            )
        if "imvj-restart-mode" in inner:
            line = inner["imvj-restart-mode"].line
            self.remarks.append(f"line {line}: <imvj-restart-mode>: what was learnt is compressed by singular values")
        if not tag["reduced-time-grid"]:
            self.remarks.append(f"line {tag.line}: <{tag.name}>: differences are built at the end of the window only")

    def _factor(self, tag: Element) -> float:
        if not 0 < tag["value"] <= 1:
            self.refuse(tag.line, f"<{tag.name}>: {tag['value']:g} is not above 0 and at most 1")
        return float(tag["value"])

    def _check_schemes(self, schemes: tuple[SchemeTag, ...]) -> None:
        last = self.root.line
        if not schemes:
            self.refuse(last, "there is no coupling scheme")
        for name in self.participants:
            own = [s for s in schemes if name in s.participants]
            implicit = [s for s in own if s.implicit]
            if not own:
                self.refuse(last, f"participant '{name}' is in no coupling scheme")
            if len(implicit) > 1:
                self.refuse(
                    implicit[1].line,
                    f"participant '{name}' would be in two implicit schemes; couple all of them with a cosolve method "
                    "(--method implicit), which solves one interface problem",
                )
            if implicit:
                H = implicit[0].window
                for s in own:
                    ratio = s.window / H if H else 1.0
                    if not s.implicit and (not s.window or not H or abs(ratio - round(ratio)) > 1e-9 or ratio < 0.5):
                        self.refuse(
                            s.line, f"windows of this explicit scheme would end inside those of the implicit scheme of "
                            f"'{name}'; make them a whole multiple of {H:g}",
                        )  # fmt: skip
