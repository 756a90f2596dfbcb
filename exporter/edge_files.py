"""Writes edges/NN.tsv: blocks are added to their relation's file as they come, one relation after another at the end.

A relation whose source stores every edge in both directions is recognised without holding its edges: two sums over
keyed hashes of the rows, one of (source, target, attributes), one of (target, source, attributes), are equal where
the two multisets are. Its file is then read once more and every second row left out. One that comes as a whole is put
in order and halved before it is written.
"""

from __future__ import annotations

import io
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from exporter import tsv
from exporter.edge_arrays import in_order
from exporter.edge_blocks import Ids, TypeIds, canonical, checked_edge_blocks, count_triples
from exporter.folder import HashedFile
from exporter.layout import edge_file
from exporter.source import EdgeBlock

_MASK = (1 << 64) - 1
_ROWS = 2_000_000  # of a whole relation, written at a time
_FEW = 10_000  # rows up to which a file isn't opened for them, but when there are more
Hashes = NDArray[np.uint64]


class _Relation:
    """One relation in the making."""

    def __init__(self, number: int, attributes: Sequence[str], files: Path) -> None:
        self.attributes = tuple(attributes)
        self.file = HashedFile(files / edge_file(number))
        self.rows = 0  # written
        self.source_rows = 0
        self.self_loops = 0
        self.triples: Counter[tuple[int, int]] = Counter()
        self.forward_sum = 0
        self.backward_sum = 0
        self.symmetric = False
        self.settled = False  # whether it is symmetric is known before its end, and its file as it should be
        self.file.write(self.header)

    @property
    def header(self) -> bytes:
        return "\t".join(("source", "target", *map(tsv.escape, self.attributes))).encode() + b"\n"


class EdgeFiles:
    """Writes edges, relation ids in the order of `relations`, further ones in the order in which they first occur.

    `type_ids` is the type of each node; type names by id are needed for the schema only.
    """

    def __init__(self, files: Path, type_ids: TypeIds, relations: Sequence[str] = ()) -> None:
        self._files = files
        self._type_ids = type_ids
        self._relations: dict[str, _Relation] = {}
        # A new key each time: no graph can be made whose rows collide on purpose.
        self._keys = [np.uint64(secrets.randbits(64) | 1) for _ in range(3)]
        self.written: dict[str, dict[str, int | str]] = {}
        (files / "edges").mkdir()
        for name in relations:
            self._relation(name, ())

    def _relation(self, name: str, attributes: Sequence[str]) -> _Relation:
        relation = self._relations.get(name)
        if relation is None:
            relation = _Relation(len(self._relations), attributes, self._files)
            self._relations[name] = relation
        return relation

    @property
    def count(self) -> int:
        return sum(relation.rows for relation in self._relations.values())

    def add(self, block: EdgeBlock) -> None:
        """Write a block of edges behind those of its relation."""
        relation = self._relation(block.relation, list(block.attributes))
        if block.whole:
            self._add_whole(relation, block)
            return
        if block.undirected:
            block = self._lower_first(block)
            relation.symmetric = relation.settled = True
        texts = _attribute_texts(block)
        if len(block.sources) > _FEW:
            relation.file.write_by(partial(write_rows, block.sources, block.targets, texts))
        else:
            few = io.BytesIO()
            write_rows(block.sources, block.targets, texts, few)
            relation.file.write(few.getvalue())
        relation.rows += len(block.sources)
        relation.source_rows += len(block.sources)
        relation.self_loops += int(np.count_nonzero(block.sources == block.targets))
        relation.triples.update(count_triples(self._type_ids, block.sources, block.targets))
        extra = None if texts is None else texts.hash(int(self._keys[2])).to_numpy()
        relation.forward_sum += self._hash_sum(block.sources, block.targets, extra)
        relation.backward_sum += self._hash_sum(block.targets, block.sources, extra)

    def _add_whole(self, relation: _Relation, block: EdgeBlock) -> None:
        sources, targets, relation.symmetric = in_order(self._type_ids, block.sources, block.targets)
        for start in range(0, len(sources), _ROWS):
            rows = slice(start, start + _ROWS)
            relation.file.write_by(partial(write_rows, sources[rows], targets[rows], None))
            relation.triples.update(count_triples(self._type_ids, sources[rows], targets[rows]))
        relation.rows = len(sources)
        relation.source_rows = len(block.sources)
        relation.settled = True

    def _lower_first(self, block: EdgeBlock) -> EdgeBlock:
        """Edges without direction as those of every symmetric relation are written."""
        before = canonical(self._type_ids, block.sources, block.targets)
        sources, targets = (
            np.where(before, *ends) for ends in ((block.sources, block.targets), (block.targets, block.sources))
        )
        return replace(block, sources=sources, targets=targets)

    def _hash_sum(self, first: Ids, second: Ids, extra: Hashes | None) -> int:
        rows = first.view(np.uint64) * self._keys[0] + second.view(np.uint64) * self._keys[1]
        if extra is not None:
            rows += extra
        return int(np.add.reduce(_mixed(rows)))

    def finish(self) -> None:
        """Put every file on disk, relations stored in both directions halved."""
        for number, relation in enumerate(self._relations.values()):
            same = (relation.forward_sum - relation.backward_sum) & _MASK == 0
            if same and relation.self_loops < relation.rows and not relation.settled:
                self._halve(number, relation)
            self.written[edge_file(number)] = relation.file.finish()

    def _halve(self, number: int, relation: _Relation) -> None:
        """Keep rows whose source comes first by (type id, node id), and every second of equal self loops."""
        relation.file.finish()
        path = relation.file.path
        doubled = path.with_suffix(".doubled")
        path.rename(doubled)
        halved = _Relation(number, relation.attributes, self._files)
        seen: set[bytes] = set()
        for block in checked_edge_blocks(doubled, 2 + len(relation.attributes)):
            keep = canonical(self._type_ids, block.sources, block.targets)
            loops = np.flatnonzero(block.sources == block.targets).tolist()
            lines = block.lines()
            for row in loops:
                keep[row] = lines[row] not in seen
                seen ^= {lines[row]}
            halved.file.write(b"".join(compress(lines, keep.tolist())))
            halved.triples.update(count_triples(self._type_ids, block.sources[keep], block.targets[keep]))
            halved.rows += int(np.count_nonzero(keep))
        doubled.unlink()
        relation.file, relation.triples, relation.rows = halved.file, halved.triples, halved.rows
        relation.symmetric = True

    def relations(self, type_names: Sequence[str]) -> list[dict[str, Any]]:
        """The schema's relations."""
        return [
            {
                "id": number,
                "name": name,
                "file": edge_file(number),
                "rows": relation.rows,
                "symmetric": relation.symmetric,
                **({"source_rows": relation.source_rows} if relation.symmetric else {}),
                "triples": [
                    {"head": type_names[head], "tail": type_names[tail], "count": count}
                    for (head, tail), count in sorted(relation.triples.items())
                ],
                "attributes": list(relation.attributes),
            }
            for number, (name, relation) in enumerate(self._relations.items())
        ]

    def source_rows(self) -> list[dict[str, Any]]:
        """For each relation how many rows the source had and how many are written."""
        return [
            {"name": name, "source_rows": relation.source_rows, "rows": relation.rows}
            for name, relation in self._relations.items()
        ]


def _mixed(values: Hashes) -> Hashes:
    """splitmix64's finaliser (Steele, Lea, Flood 2014), modulo 2**64, in place."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def _attribute_texts(block: EdgeBlock) -> pl.Series | None:
    """The attributes of each edge as written: escaped cells, tabs between them; None where it has none."""
    if not block.attributes:
        return None
    cells = [
        pl.Series(name, values, dtype=pl.String)
        .str.replace_many(["\\", "\t", "\n", "\r"], [r"\\", r"\t", r"\n", r"\r"])
        .fill_null(tsv.NULL)
        for name, values in zip(map(str, range(len(block.attributes))), block.attributes.values(), strict=True)
    ]
    return pl.DataFrame(cells).select(pl.concat_str(pl.all(), separator="\t")).to_series()


def write_rows(sources: Ids, targets: Ids, texts: pl.Series | None, file: IO[bytes]) -> None:
    """Write rows of an edge file; `texts` are the attributes as they stand there. `file` has no buffer of its own."""
    columns = {"source": pl.Series(sources), "target": pl.Series(targets)}
    if texts is not None:
        columns["attributes"] = texts
    pl.DataFrame(columns).write_csv(file, separator="\t", include_header=False, quote_style="never")
