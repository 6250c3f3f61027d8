"""findings: what a reader of a comparison should know first, in sentences."""

from collections.abc import Iterator, Sequence

from tvm_neuron.numerics.measure import percent
from tvm_neuron.numerics.rows import Finding, Nonfinite, OperatorError, Output, WhatIf


def findings(
    outputs: Sequence[Output], rows: Sequence[OperatorError], nonfinite: Sequence[Nonfinite], tried: Sequence[WhatIf]
) -> Iterator[Finding]:
    """Outputs; what is not explained, and where it begins; NaN and infinities; where error enters; what would help."""
    yield from map(_output, outputs)
    yield from _unexplained(rows)
    for one in nonfinite:
        counts = [f"{number} {name}" for number, name in ((one.nans, "NaN"), (one.infinities, "infinite")) if number]
        yield Finding(
            f"{' and '.join(counts) or 'Values that are not finite'} in '{one.tensor}': operator {one.name} ({one.op}) "
            f"makes the first of finite operands, {one.run}."
        )
    yield from _entering(rows)
    yield from _what_if(outputs, tried)


def _output(output: Output) -> Finding:
    found = f"Output '{output.name}' departs by {percent(output.found.error)} (relative L2)"
    if output.found.stray:
        found += f", and {output.found.stray} elements of it are not finite where they are in float32, or the other way"
    if output.is_explained:
        same = f"the core's roundings give {percent(output.explained.error)}"
        return Finding(f"{found}: {same}, and explain up to {percent(output.bound)}.")
    return Finding(f"{found}: roundings explain no more than {percent(output.bound)}.", is_defect=True)


def _unexplained(rows: Sequence[OperatorError]) -> Iterator[Finding]:
    bad = [row for row in rows if not row.is_explained]
    if not bad:
        return
    first = next((row for row in bad if not row.is_explained_alone), None)
    if first is not None and first.alone is not None:
        yield Finding(
            f"Operator {first.name} ({first.op}) is the first that is wrong by itself: on exact inputs it departs by "
            f"{percent(first.alone.error)}, its roundings give {percent(first.alone_explained.error)}. That is a "
            "defect of the compiler or of the hardware model; please report it.",
            is_defect=True,
        )
        return
    row = bad[0]
    assert row.grown is not None
    yield Finding(
        f"No operator is wrong by itself. The program up to operator {row.name} ({row.op}) is the first that departs "
        f"by more ({percent(row.grown.error)}) than its roundings ({percent(row.grown_explained.error)}): it is wrong "
        "how the compiler joins that operator with those before it. Please report it.",
        is_defect=True,
    )


def _entering(rows: Sequence[OperatorError]) -> Iterator[Finding]:
    worst = sorted((row for row in rows if row.alone and row.alone.error), key=lambda row: -_error(row))[:3]
    if worst:
        told = ", ".join(f"{row.name} ({row.op}, {percent(_error(row))}: {row.rounds})" for row in worst)
        yield Finding(f"Most error enters, each operator on exact inputs, at {told}.")


def _what_if(outputs: Sequence[Output], tried: Sequence[WhatIf]) -> Iterator[Finding]:
    now = max((output.found.error for output in outputs), default=0.0)
    better = [one for one in tried if one.error < now]
    if better:
        best = min(better, key=lambda one: one.error)
        rules = " ".join(f"--fp32-cast-of '{name}={mode}'" for name, mode in best.fp32_cast_of.items())
        yield Finding(
            f"With {rules} the error would be {percent(best.error)} instead of {percent(now)}, for "
            f"{best.more_us:+,.1f} us."
        )


def _error(row: OperatorError) -> float:
    return row.alone.error if row.alone is not None else 0.0
