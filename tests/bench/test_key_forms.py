"""The forms of automatic keys that the benchmark compares are what their names say."""

from __future__ import annotations

import base64
import uuid

import pytest

from bench import key_forms
from bench.key_forms import Share

SHARE = Share(partition=7, start=260, rows=3)
THIRTEEN_BYTES = [
    (1_692_730_365_820 % 2**40).to_bytes(5, "big") + (7).to_bytes(3, "big") + row.to_bytes(5, "big")
    for row in (260, 261, 262)
]


@pytest.mark.parametrize(("form", "version"), [("UUID v4", 4), ("UUID v6", 6), ("UUID v7", 7)])
def test_uuids_have_their_version_and_variant(form: str, version: int) -> None:
    found = [uuid.UUID(text) for text in key_forms.OTHER_FORMS[form](SHARE).to_pylist()]
    assert {value.version for value in found} == {version}
    assert {value.variant for value in found} == {uuid.RFC_4122}
    assert len(set(found)) == 3


def test_a_uuid_of_version_6_has_the_time_in_order() -> None:
    first, second, _ = (uuid.UUID(text) for text in key_forms.uuid_6(SHARE).to_pylist())
    ticks = [value.int >> 80 << 12 | value.int >> 64 & 0xFFF for value in (first, second)]
    assert ticks[1] - ticks[0] == 1
    assert ticks[0] == key_forms._TICKS_TO_1970 + 1_692_730_365_820 * 10_000 + 260


def test_a_uuid_of_version_7_begins_with_the_millisecond() -> None:
    found = key_forms.uuid_7(Share(1, 1_999, 2)).to_pylist()
    assert [uuid.UUID(text).int >> 80 for text in found] == [1_692_730_365_821, 1_692_730_365_822]


def test_base64_is_that_of_the_thirteen_bytes() -> None:
    assert key_forms.base64(SHARE).to_pylist() == [base64.b64encode(value).decode() for value in THIRTEEN_BYTES]


def test_ascii_has_the_same_bits_seven_to_a_character() -> None:
    for text, value in zip(key_forms.ascii_7(SHARE).to_pylist(), THIRTEEN_BYTES, strict=True):
        bits = "".join(f"{ord(character):07b}" for character in text)
        assert (len(text), bits[:104], bits[104:]) == (15, f"{int.from_bytes(value, 'big'):0104b}", "0")
