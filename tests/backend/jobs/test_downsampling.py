"""Downsampling keeps what matters: the extremes, the ends, and every stretch that is no number."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_api.jobs.metrics.downsampling import choose_width, collect, reduce_buckets, reduce_points

values = st.one_of(st.none(), st.just(math.inf), st.just(-math.inf), st.floats(-1e6, 1e6))
curves = st.dictionaries(st.integers(0, 5_000), values, min_size=1, max_size=400).map(
    lambda points: sorted(points.items())
)


@given(curve=curves, max_points=st.integers(10, 60), multiple=st.sampled_from([8, 64]))
@settings(max_examples=300, deadline=None)
def test_a_short_curve_has_the_extremes_of_the_long_one(
    curve: list[tuple[int, float | None]], max_points: int, multiple: int
) -> None:
    has_odd = any(value is None or not math.isfinite(value) for _, value in curve)
    span = curve[-1][0] - curve[0][0] + 1

    width = choose_width(span=span, max_points=max_points, has_odd=has_odd, multiple=multiple)
    short = collect(reduce_points(curve, width=width), first=curve[0], last=curve[-1])

    assert len(short) <= max_points
    assert set(short) <= set(curve)
    assert short == sorted(short, key=lambda point: point[0])
    assert (short[0], short[-1]) == (curve[0], curve[-1])
    finite = [value for _, value in curve if value is not None and math.isfinite(value)]
    kept = [value for _, value in short if value is not None and math.isfinite(value)]
    if finite:
        assert (min(kept), max(kept)) == (min(finite), max(finite))
    assert has_odd == any(value is None or not math.isfinite(value) for _, value in short)


@given(curve=curves, multiple=st.sampled_from([4, 16]), factor=st.integers(1, 8))
@settings(max_examples=200, deadline=None)
def test_putting_buckets_together_is_the_same_as_making_large_ones(
    curve: list[tuple[int, float | None]], multiple: int, factor: int
) -> None:
    small = [
        (step // multiple * multiple, bucket)
        for step in sorted({step // multiple * multiple for step, _ in curve})
        for bucket in reduce_points(
            [point for point in curve if point[0] // multiple * multiple == step], width=multiple
        )
    ]

    merged = list(reduce_buckets(small, width=multiple * factor))

    assert merged == list(reduce_points(curve, width=multiple * factor))
