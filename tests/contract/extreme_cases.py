"""A table of the smallest and greatest values of each type, conditions over it, and the answer of Spark for each row.

`test_spark_gives_the_recorded_answers` in `test_extreme_values.py` compares the answers with those of Spark.
"""

# ruff: noqa: E501 — a row of the table stays one line.
from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from tests.contract.expression_cases import listed

_DATES = [-719_528, 2_932_896, None, 0, 1, 2_932_897, 2_147_483_647, -2_147_483_648]
_TIMES = [-(2**63), 2**63 - 1, None, 0, 1, 253_402_300_800_000_000, -62_167_219_200_000_000, -1]
TABLE = pa.table(
    {
        "id": pa.array(range(8), pa.int32()),
        "t": pa.array([-128, 127, None, 0, 1, -1, 5, 100], pa.int8()),
        "i": pa.array([-(2**31), 2**31 - 1, None, 0, 1, -1, 300, 100], pa.int32()),
        "l": pa.array([-(2**63), 2**63 - 1, None, 0, 1, -1, 2**31, 100], pa.int64()),
        "f": pa.array([-3.4e38, 3.4e38, None, 0.0, float("nan"), float("inf"), float("-inf"), 1e-45], pa.float32()),
        "d": pa.array([-1.7e308, 1.7e308, None, 0.0, float("nan"), float("inf"), float("-inf"), 9.3e18]),
        "p": pa.array([Decimal(x) if x else None for x in ["-99999999.99", "99999999.99", "", "0", "0.01", "-0.01", "127.99", "9.99"]], pa.decimal128(10, 2)),
        "q": pa.array([Decimal(x) if x else None for x in ["-" + "9" * 38, "9" * 38, "", "0", "1", "-1", str(2**63), str(2**63 - 1)]], pa.decimal128(38, 0)),
        "n": pa.array(["-9223372036854775809", "9223372036854775807", None, "0", "1e999", "300", " 9" + "9" * 50, "x"]),
        "s": pa.array(["0000-01-01", "10000-01-01", None, "2024-02-30", "2024-01-01 25:00:00", "2024-01-01T00:00:00.1234567", "+2024-1-1", "2024-13-01"]),
        "day": pa.array(_DATES, pa.int32()).cast(pa.date32()),
        "at": pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "local": pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us")),
    }
)  # fmt: skip
_NUMBERS = ("t", "i", "l", "f", "d", "p", "q")
_FAR = listed("""
300 | -2147483649 | 9223372036854775808 | 1e300 | -1e39 | 0.001 | '99999999999999999999' | double('NaN')
12345678901234567890123456789012345678
""")
_DAYS = listed("""
0000-01-01 | -0001-12-31 | 9999-12-31 | 10000-01-01 | +10000-01-01 | 290000-01-01 | 5881580-07-11 | 9999999-01-01
2024-02-30 | x
""")


def conditions() -> list[str]:
    """List the conditions: types, operators, literals far out of range, casts, functions, and parts evaluated lazily."""
    found = [f"{name} {sign} {far}" for name in _NUMBERS for far in _FAR for sign in ("=", "<", ">=")]
    found += [
        f"{name} {sum_} > 0"
        for name in _NUMBERS
        for sum_ in ("+ 1", "- 1", "* 2", "* -1", "/ 3", f"+ {name}", f"* {name}")
    ]
    found += [f"{call} >= 0" for name in _NUMBERS for call in (f"-{name}", f"abs({name})", f"round({name})")]
    found += [f"{name} {sign} -1 >= 0" for name in ("t", "i", "l") for sign in ("DIV", "%")]
    found += [
        f"CAST({name} AS {target}) >= 0"
        for name in (*_NUMBERS, "n")
        for target in ("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(3,1)", "DECIMAL(38,0)")
    ]  # fmt: skip
    found += [f"{name} {sign} '{day}'" for name in ("day", "at", "local") for day in _DAYS for sign in ("=", "<", ">=")]
    found += [
        f"{name} > {kind} '{day}'"
        for name in ("day", "at", "local")
        for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
        for day in _DAYS[:6]
    ]
    found += [f"CAST({name} AS STRING) >= '2'" for name in ("day", "at", "local", "i", "l", "p", "q")]
    found += [
        f"{part}({name}) > 100" for part in ("year", "month", "day", "quarter") for name in ("day", "at", "local")
    ]
    found += [
        f"CAST({name} AS {target}) > {target} '2000-01-01'"
        for name in ("day", "at", "local", "s")
        for target in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    ]
    numbers = ", ".join(map(str, range(290, 320)))
    return [*found, *_SOME, f"t IN ({numbers}, 100)", f"day IN ({', '.join(map(repr, _DAYS[:7] * 3))})", *_MORE, *_LAZY]


_SOME = listed("""
day < at | day = local | at = local | at >= day | s > day
n = i | n < l | n >= d | n = p | l = q | l > p | d > q | i + l > q | p = f
i IN (1, 9223372036854775808) | t IN (300, 5) | day IN ('0000-01-01', '10000-01-01') | t NOT IN (1, 1000) | l IN (1, l + 1)
""")
_MORE = listed("""
t BETWEEN -1000 AND 1000 | day BETWEEN '-0001-01-01' AND '290000-01-01' | i BETWEEN 5 AND i + 1
l NOT BETWEEN l - 1 AND 5 | l BETWEEN NULL AND l + 1
""")
_LAZY = [
    "i < 128 AND i > -129 AND CAST(i AS TINYINT) > 0",
    "i >= 128 OR i < -128 OR CAST(i AS TINYINT) > 0",
    "NOT (i >= 128 OR i < -128 OR CAST(i AS TINYINT) > 0)",
    "CAST(i AS TINYINT) > 0 AND i < 128 AND i > -129",
    "id <> 1 AND (id = 0 OR i + 1 > 0 AND i - 1 > -5)",
    "CASE WHEN i > 1000 THEN 1 WHEN i < -1000 THEN 2 ELSE CAST(i AS SMALLINT) END > 1",
    "CASE id WHEN 0 THEN 0 WHEN 1 THEN 0 ELSE i * 3 END > 1",
    "CASE WHEN id = 1 THEN i + 1 END > 0",
    "CASE WHEN id = 3 THEN i + 1 END > 0",
    "if(i > 1000 OR i < -1000, NULL, CAST(i AS SMALLINT)) > 0",
    "if(i > 1000, i + 1, 0) = 0",
    "coalesce(i, l + 1) > 0",
    "coalesce(nullif(id, 1), l + 1) > 0",
    "coalesce(nullif(id, 3), l + 1) > 0",
    "nullif(id, 1) + (l + 1) > 0",
    "nullif(nullif(id, 0), 1) = CAST(l AS INT)",
    "nullif(nullif(nullif(id, 0), 1), 6) = CAST(l AS INT)",
    "NULL AND l + 1 > 0",
    "id > 100 AND l + 1 > 0",
    "id < 100 OR l + 1 > 0",
    "(id > 100) = (l + 1 > 0)",
    "id IS NULL AND CAST(day AS TIMESTAMP) > at",
    "year(day) < 9999 AND day > DATE '0000-01-01' AND CAST(day AS TIMESTAMP) > TIMESTAMP '1970-01-01'",
    "d BETWEEN -100 AND 100 AND CAST(d AS INT) = 0",
]  # fmt: skip

# For each condition, in order, a letter for each row: T, F, N for NULL, E if Spark 4 fails for the row in ANSI mode, e if
# its older mode gives NULL there.
_ANSWERS = """
FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF
TTNTTTTT FFNFFFFF TFNTFTFF FTNFTFTT eeNeeeee eeNeeeee eeNeeeee FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFTF
TFNTTTFT FTNFFFTF FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF TTNTTTTT
FFNFFFFF TFNTFTFF FTNFTFTT eeNeeeee eeNeeeee eeNeeeee FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFFF TFNTTTFT
FTNFFFTF FFNFFFFF TFNFFFFF FTNTTTTT FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF
TFNTFTFF FTNFTFTT eeNeeeee eeNeeeee eeNeeeee FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TTTTTTTT FFFFFFFF FFNFFFFF TFNTFFTT FTNFTTFF
FFNFFFFF TFNFFFTF FTNTTTFT FFNFFFFF TFNTFFTT FTNFTTFF FFNFFFFF TTNTFFTT FFNFTTFF FFNFFFFF FFNFFFTF TTNTTTFT FFNFFFFF TFNTFFTT
FTNFTTFF FFNFFFFF TFNTFFTT FTNFTTFF FFNFTFFF TTNTFTTT FFNFTFFF FFNFFFFF TFNTFFTT FTNFTTFF FFNFFFFF TFNTFFTF FTNFTTFT FFNFFFFF
TFNFFFTF FTNTTTFT FFNFFFFF TFNTFFTF FTNFTTFT FFNFFFFF TFNTFFTT FTNFTTFF FFNFFFFF TFNFFFTF FTNTTTFT FFNFFFFF TFNTFFTF FTNFTTFT
FFNFFFFF TFNTFFTT FTNFTTFF FFNFTFFF TTNTFTTT FFNFTFFF FFNFFFFF TFNTFFTT FTNFTTFF FFNFFFFF TFNTTTTT FTNFFFFF FFNFFFFF FFNFFFFF
TTNTTTTT FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF TFNTFTFF FTNFTFTT FFNFFFFF
TTNTTTTT FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TFNTTTFF FTNFFFTT FFNFFFFF TFNFFFFF FTNTTTTT
FFNFFFTF TFNTTTFT FTNFFFTF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF FFNFFFFF TTNTTTTT FFNTFFFF TFNFFTFF FTNTTFTT FFNFFFFF TFNTTTTT
FTNFFFFF FFNFFFFF TTNTTTTT FFNFFFFF FFNFFFFF TFNTTTTT FTNFFFFF FTNTTFTT FTNFFFTT FTNFTFTT TFNFFTFF FTNFTFTT EENFTFTE EENFTTTE
FENTTFTT ETNFFFTT EENFTFTT EFNFFTFF FTNFTFTT EENFTFTT EENFTTTT FENTTFTT ETNFFFTT EENFTFTT EFNFFTFF FTNFTFTT EENFTFTT EENFTTTT
FTNTTTFT FTNFTTFF FTNFTTFT TFNFTFTF FTNFTTFT FTNFTTFT TTNFTTTF FTNTTTFT FTNFTTFT FTNFTTFT TFNFTFTF FTNFTTFT FTNFTTFT TTNFTTTT
FTNTTTTT FTNFFFTT FTNFTFTT TFNFFTFF FTNFTFTT FTNFTFTT TTNFTTTT FeNTTFTT eTNFFFTT eeNFTFTT TFNFFTFF eeNFTFTT eeNFTFTT eeNFTTTT
EFNTFTFF ETNTTTTT FTNTTFTT EFNTFTFF ETNTTTTT FTNTTFTT EFNTFTFF ETNTTTTT FTNTTFTT TFNTTFTF TTNTTTTT FTNTTTFT TFNTTFTF TTNTTTTT
FTNTTTFT TFNTFTFF TTNTTTTT FTNTTTTT eeNTFTFF eTNTTTTT FTNTTFTT TFNTFTFF TTNTTTTT TFNTFTFF TTNTTTTT EFNTFTFF TTNTTTTT FTNTTFTT
FTNTTFTT FTNTTFTT FTNTTFTT FTNTTFTT eeNTTFTe FTNTTFTT EENTTFET FTNTTFTT FTNTTFTT FTNTTFTT FTNTTFTT eeNTTFee FTNTTFTT EENTTFET
EENTTFET FTNTTFTT FTNTTFTT FTNTTFTT eeNTTFee FTNTTFTT EENTEEET EENTEEET EENTEEET FTNTTTFT FTNTTTFT eeNTNNNT eeNTNNNT EENTEEEE
EENTEEEE EENTEEEE FTNTTTFT FTNTTTFT eeNTNNNe eeNTNNNT EENTTTTT FTNTTTTT FTNTTTTT FTNTTFTT FTNTTFTT eeNTTTeT FTNTTTTT EENTTFEE
EENTTFEE EENTTFET FTNTTFTT FTNTTFTT eeNTTFee FTNTTFTT eeNTeeee eeNTeTee eTNTeTee FTNTTTTe FTNTTTTe eeNTeeee FTNTeTee TFNFFFFF
FFNFFFFT TTNTTTTF FFNFFFFF FFNFFFFT TTNTTTTF FTNFFFFF TFNTTFFT FTNFFTTF FFNFFTFF TTNTTFFT FFNFFTTF FFNFFTFF TTNTTFFT FFNFFTTF
FFNFFFFF TTNTTTFT FFNFFFTF FFNFFFTF TTNTTTFT FFNFFFTF eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee
eeNeeeee FFNFFFTF TFNFFFFF FTNTTTTT FFNFFFFF TFNFFFFF FTNTTTTT FFNFFFFF TFNTTFTT FTNFFTFF FFNFFTFF TFNTTFTT FTNFFTFF FFNFFTFF
TFNTTFTT FTNFFTFF FFNFFFFF TFNTTTTT FTNFFFFF eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee
eeNeeeee eeNeeeee eeNeeeee FFNFFFTF TFNFFFFF FTNTTTTT FFNFFFFF TFNFFFFF FTNTTTTT FFNFFFFF TFNTTFTT FTNFFTFF FFNFFTFF TFNTTFTT
FTNFFTFF FFNFFTFF TFNTTFTT FTNFFTFF FFNFFFFF TFNTTTTT FTNFFFFF eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee
eeNeeeee eeNeeeee eeNeeeee eeNeeeee eeNeeeee FTNTTTTF TTNTTTTF FFNFFTTF FFNFFFTF FFNFFFTF FFNFFFTF FTNTTTTF TTNTTTTF FFNFFTTF
FFNFFFTF FFNFFFTF FFNFFFTF FTNTTTTF TTNTTTTF FFNFFTTF FFNFFFTF FFNFFFTF FFNFFFTF FTNTTTFT FTNTTTTT FTNFFTFF FTNFFFFF FTNFFFFF
FTNFFFFF FTNTTTFT FTNTTTTT FTNFFTFF FTNFFFFF FTNFFFFF FTNFFFFF FTNTTTFT FTNTTTTT FTNFFTFF FTNFFFFF FTNFFFFF FTNFFFFF FTNTTTFT
FTNTTTTT FTNFFTFF FTNFFFFF FTNFFFFF FTNFFFFF FTNTTTFT FTNTTTTT FTNFFTFF FTNFFFFF FTNFFFFF FTNFFFFF FTNTTTFT FTNTTTTT FTNFFTFF
FTNFFFFF FTNFFFFF FTNFFFFF FTNFFFFF FFNFFFFF FFNFFFFF FTNFFFTF FTNFFFTF FTNFFFFT FTNFFFTT FTNTTTTF FTNTTTFT FTNTTTFT FFNFFFFF
FFNFFFFF FFNFFFFF FFNFFFFF FFNFFFFF FFNFFFFF FFNFFFFF FFNFFFFF FFNFFFFF FTNFFTTF FTNFFTTF FTNFFTTF FTNFFTFF FTNFFTFF FTNFFTFF
FTNFFTFF FTNFFTFF FTNFFTFF FTNeTTTe FTNeeTTe FTNeeTTe FTNFFFee FFNTFTee TTNTTTTT FTNTFTee FTNeTFFe eFNTeFee eFNFeFee TFNTFFTe
FFNTFFFe FFNTTTFF FTNFTFTT FTNFTTFT EENFTFFF FFNTFFFF FFNFTFFF FFNFFFTF TFNFFTFF TTNTFTTT FENFTFFF FFNFFFFT TTNFFTTF TTNTTTTT
TTNTTTFF FENFFFTT ETNFFFTT NENNNNNN FFNFTFFT TTNFTFTT FFNTFTFF EENFTFET TFNTTFTT TFNFFFTT FFNFTFTT NENNNNNN NNNTNNNN NNNFTFTT
TETTTTTT FTNFTFTT FETTTTTT FTTTTTTT FNNTTTTT NNNFFFEF NNNFFFNF FENNNFNN FFFFFFFF TTTTTTTT TENFFTFF FFFFFFFF FFNFTFFF FFNTFFFF
"""
ANSWERS: dict[str, str] = dict(zip(conditions(), _ANSWERS.split(), strict=True))

DIFFERENT = {
    # Spark decides by the literal alone, for rows with NULL too.
    **{
        f"{name} {sign} {far}": f"{letter * 2}N{letter * 5}"
        for name in ("t", "i", "l")
        for sign, letter in (("<", "T"), (">=", "F"))
        for far in (_FAR[2], _FAR[-1])
    },
    # Spark rounds to 38 digits to compare; here the comparison is exact.
    "q = 0.001": "FFNFFFFF",
    "q < 0.001": "TFNTFTFF",
    "q >= 0.001": "FTNFTFTT",
    "-q >= 0": "TFNTFTFF",
    "abs(q) >= 0": "TTNTTTTT",
    # Arrow writes years of 16 bits: refused.
    "CAST(day AS STRING) >= '2'": "FTNFFFEE",
    "CAST(at AS STRING) >= '2'": "EENFFFFF",
    "CAST(local AS STRING) >= '2'": "EENFFFFF",
    # Spark compares the dates, without the cast, which fails for far dates.
    "CAST(day AS TIMESTAMP) > TIMESTAMP '2000-01-01'": "FTNFFTEE",
    "CAST(day AS TIMESTAMP_NTZ) > TIMESTAMP_NTZ '2000-01-01'": "FTNFFTEE",
    # Arrow reads years of four digits, and hours of two digits: refused.
    "CAST(s AS DATE) > DATE '2000-01-01'": "FENNTTEN",
    "CAST(s AS TIMESTAMP) > TIMESTAMP '2000-01-01'": "FENNETEN",
    "CAST(s AS TIMESTAMP_NTZ) > TIMESTAMP_NTZ '2000-01-01'": "FENNETEN",
    "s > day": "FENNTFEN",
}
"""The answers of hoodie where it refuses, or deliberately does not follow Spark."""
