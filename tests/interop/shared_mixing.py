"""JVM Hudi and `hoodie` write in turns into tables that mix the fields of two versions; both read the same rows."""

from __future__ import annotations

import random
from pathlib import Path

import hoodie
from hoodie.view.slices import list_slices
from tests.interop.judges import Jvm
from tests.support.mixing_tables import LATEST, MODEL, Model, Row, create, drawn, rows_of, schema_of, shown

KEYS = [f"k{number:02}" for number in range(60)]


def take_turns(jvm: Jvm, path: Path, payload: str, version: int, table_type: str, seed: int) -> None:
    """Write batches with duplicates, deletes and late rows; in the end both compact.

    Rows of copy-on-write tables are compared with the model too; in the others the files decide which rows are merged.
    """
    chooser, model = random.Random(seed), Model(payload, version)
    create(
        path, payload, version, index="simple", type=table_type.lower(), properties={"hoodie.compact.inline": "false"}
    )
    options = {
        "hoodie.datasource.write.payload.class": MODEL + payload,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.compact.inline": "false",
    }

    def write(rows: list[Row], *, is_ours: bool, operation: str = "upsert") -> None:
        data = rows_of(rows, payload)
        if is_ours:
            table = hoodie.open(path, spark=False)
            _ = table.upsert(data) if operation == "upsert" else table.delete(data.select(["id"]))
        else:
            jvm.write(
                jvm.frame(data).coalesce(1), path, table_name=path.name, key="id",
                ordering=schema_of(payload).names[1], table_type=table_type, table_version=version,
                operation=operation, options=options,
            )  # fmt: skip

    def check() -> None:
        ours = shown(hoodie.open(path, spark=False).to_arrow(), payload)
        assert ours == shown(jvm.read(path), payload)
        if table_type == "COPY_ON_WRITE":
            assert ours == model.rows

    # In logs of version 8, 1.0.2 cannot read a delete without an ordering value, and with one class it orders others.
    is_logged_8 = version == 8 and table_type == "MERGE_ON_READ"

    def batch(keys: list[str], step: int) -> list[Row]:
        rows = [drawn(chooser, key, payload, 1000 * step + number) for number, key in enumerate(keys)]
        return [(*row[:-1], False) for row in rows] if is_logged_8 and payload == LATEST else rows

    for step in range(6):
        is_ours = step % 2 == 1
        # Rows of known keys alone are logged; then inserts do not rewrite the base file.
        known = sorted(shown(hoodie.open(path, spark=False).to_arrow(), payload))
        keys = chooser.choices(known if step < 3 else KEYS, k=70) if step else KEYS
        rows = batch(keys, step)
        model.upsert(rows)
        write(rows, is_ours=is_ours)
        if not is_logged_8 and step in (2, 3):
            gone = [drawn(chooser, key, payload, 0) for key in chooser.sample(KEYS, 6)]
            for row in gone:
                model.rows.pop(row[0], None)
            write(gone, is_ours=not is_ours, operation="delete")
        check()
    if table_type == "COPY_ON_WRITE":
        return
    table = hoodie.open(path, spark=False)
    assert any(found.log_files for found in list_slices(table.view()))
    assert table.schedule_compaction()
    table.compact()
    check()
    write(batch(KEYS[::2], 9), is_ours=True)
    check()
