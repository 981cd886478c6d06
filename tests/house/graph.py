"""The house in numbers: rooms, who imports whom, the longest ways, files and functions.

``python tests/house/graph.py [FOLDER OF THE PACKAGE]`` prints them; the tests of the house use the graph.
"""

import ast
import sys
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "contrica"


def module_of(path, source=PACKAGE):
    """A file's module, without the name of the package: ``rows.streams``."""
    return ".".join(path.relative_to(source).with_suffix("").parts)


def imported_by(path, source=PACKAGE):
    """Modules of the package that a file imports, at any depth of its code, as `module_of` has them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == source.name:
            # "from contrica.rows import streams" imports a module, or a name of the package's
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith(f"{source.name}.")]
        for name in names:
            parts = name.split(".")[1:]
            while parts and not source.joinpath(*parts).with_suffix(".py").exists():
                if source.joinpath(*parts, "__init__.py").exists():
                    parts.append("__init__")
                    break
                parts.pop()
            if parts:
                yield ".".join(parts)


def graph_of(source=PACKAGE):
    """Modules by name, and the modules that each imports."""
    return {
        module_of(path, source): set(imported_by(path, source)) for path in source.rglob("*.py")
    }


def in_cycles(graph):
    """Modules that are in a cycle of imports, or behind one."""
    left = {name: set(used) for name, used in graph.items()}
    while leaves := [name for name, used in left.items() if not used & left.keys()]:
        for name in leaves:
            del left[name]
    return set(left)


def longest_chain(graph):
    """Modules each of which imports the next, as many as there are; the graph has no cycle."""

    @lru_cache
    def below(name):
        return max([[name, *below(used)] for used in graph[name]] or [[name]], key=len)

    return max(map(below, graph), key=len)


def functions_of(source=PACKAGE):
    """Name, lines of the body without its docstring, and number of parameters of every function."""
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            n_lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            spec = node.args
            names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
            yield (
                f"{module_of(path, source)}.{node.name}",
                n_lines,
                sum(name not in ("self", "cls") for name in names),
            )


def report(source=PACKAGE):
    """All of it, in lines."""
    graph = graph_of(source)
    rooms = defaultdict(set)
    for name, used in graph.items():
        rooms[name.split(".")[0]] |= {other.split(".")[0] for other in used}
    yield "room: rooms it imports"
    for room, used in sorted(rooms.items()):
        count = sum(name.split(".")[0] == room for name in graph)
        yield f"  {room} ({count}): {', '.join(sorted(used - {room})) or '-'}"
    cycles = in_cycles(graph)
    yield f"modules in a cycle: {', '.join(sorted(cycles)) or 'none'}"
    if not cycles:
        chain = longest_chain(graph)
        yield f"longest chain of imports: {len(chain)}: {' > '.join(chain)}"
    lengths = {
        module_of(path, source): len(path.read_text(encoding="utf-8").splitlines())
        for path in source.rglob("*.py")
    }
    longest = max(lengths, key=lengths.get)
    yield f"files: {len(lengths)}, lines: {sum(lengths.values())}"
    yield f"longest file: {longest}, {lengths[longest]} lines"
    functions = list(functions_of(source))
    bodies = [n_lines for _, n_lines, _ in functions]
    yield f"functions: {len(functions)}, bodies of more than 50 lines: {sum(n > 50 for n in bodies)}"
    name, n_lines, _ = max(functions, key=lambda each: each[1])
    yield f"longest body: {name}, {n_lines} lines"
    plain = [each for each in functions if not each[0].endswith(".__init__")]
    for what, some in (("function", plain), ("constructor", set(functions) - set(plain))):
        if some:
            name, _, n_parameters = max(some, key=lambda each: each[2])
            yield f"most parameters of a {what}: {name}, {n_parameters}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(report(Path(sys.argv[1]) if sys.argv[1:] else PACKAGE)) + "\n")
