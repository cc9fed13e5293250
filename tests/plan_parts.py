"""Parts of plans for tests: from a plan, or from the JSON that `--explain` prints."""


def parts_of(plan):
    """Return all parts of a plan, outer ones first."""
    return list(plan.explain().walk())


def printed_parts(printed):
    """Return all parts of a printed plan by their cost id."""
    found = {}

    def walk(part):
        found[part["cost_id"]] = part
        for inner in part["parts"]:
            walk(inner)

    walk(printed["plan"])
    return found
