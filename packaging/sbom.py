"""Writes a CycloneDX bill of materials from `cargo metadata`: what is compiled into one package.

usage: cargo metadata --format-version 1 | python3 sbom.py PACKAGE
"""

import json
import sys


def reached(metadata, root):
    """The packages that are compiled into `root`: normal and build dependencies, not those of tests."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen, todo = set(), [root]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        for dependency in nodes[at]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return seen


def component(package):
    return {
        "type": "library",
        "bom-ref": package["id"],
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        **({"licenses": [{"expression": package["license"].replace("/", " OR ")}]} if package["license"] else {}),
    }


def main():
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(id for id, package in packages.items() if package["name"] == sys.argv[1])
    parts = sorted(reached(metadata, root) - {root}, key=lambda id: (packages[id]["name"], packages[id]["version"]))
    own = component(packages[root]) | {"type": "application"}
    json.dump(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": own},
            "components": [component(packages[id]) for id in parts],
        },
        sys.stdout,
        indent=1,
    )
    print()


main()
