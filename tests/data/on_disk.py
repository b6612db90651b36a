"""Tables written to files in every way the tests read them back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq

from learnable.data import Files

FORMATS = ("parquet", "csv", "csv.gz", "arrow", "tsv", "semicolon.csv")


def write(frame, path, fmt="parquet", rows_at_once=None):
    """Write one file; Parquet and Arrow files hold runs of `rows_at_once` rows."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    match fmt:
        case "parquet":
            pq.write_table(table, path, row_group_size=rows_at_once or len(frame) or 1)
        case "arrow":
            with pa.OSFile(str(path), "wb") as file, pa_ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=rows_at_once)
        case "csv" | "csv.gz":
            with (
                pa.CompressedOutputStream(str(path), "gzip") if fmt == "csv.gz" else pa.OSFile(str(path), "wb") as file
            ):
                pa_csv.write_csv(table, file)
        case "tsv":
            frame.to_csv(path, index=False, sep="\t")
        case "semicolon.csv":
            frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8")
    return path


def write_parts(frame, folder, n_files=1, fmt="parquet", rows_at_once=None):
    """Write the rows in order to several files of unequal sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.linspace(0, 1, n_files + 1) ** 1.5 * len(frame)
    for number, (start, stop) in enumerate(zip(edges[:-1].round(), edges[1:].round(), strict=True)):
        part = frame.iloc[int(start) : int(stop)].reset_index(drop=True)
        write(part, folder / f"part-{number:02}.{fmt}", fmt, rows_at_once)
    return folder


def streamed(frame, folder, n_files=1, fmt="parquet", rows_at_once=None):
    """Write a table to files that are never read whole."""
    return Files(write_parts(frame, folder, n_files, fmt, rows_at_once), in_memory_bytes=0)


def text_file(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def numbers(n=300, d=3, seed=0):
    """Return features with names and a linear target with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    return frame.assign(y=X @ np.arange(1.0, d + 1) + rng.normal(size=n))
