"""Any JSON value, and the layouts in which programs write one."""

from hypothesis import strategies as st

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from(
    [
        {},
        {"indent": 2},
        {"indent": "\t"},
        {"indent": 0},
        {"separators": (",", ":")},
        {"indent": 4, "ensure_ascii": False},
    ]
)
