"""Writes edges/NN.tsv: blocks are added to their relation's file as they come, one relation after another at the end.

A relation whose source stores every edge in both directions is recognised without holding its edges: two sums over
keyed hashes of the rows, one of (source, target, attributes), one of (target, source, attributes), are equal where
the two multisets are. Its file is then read once more and every second row left out. Where bad rows of the source were
left out, as many rows may be without the one of the other direction: then all hashes are compared. A relation that
comes as a whole is put in order and halved before it is written.
"""

from __future__ import annotations

import io
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
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
from exporter.edge_blocks import EdgeRows, Ids, TypeIds, canonical, checked_edge_blocks, count_triples
from exporter.folder import HashedFile
from exporter.layout import edge_file
from exporter.source import EdgeBlock

_MASK = (1 << 64) - 1
_ROWS = 2_000_000  # of a whole relation, written at a time
_FEW = 10_000  # rows up to which a file isn't opened for them, but when there are more
_PAIRED = 10  # rows for each without the one of the other direction, where all of them are taken to be stored in both
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
        self.warnings: list[str] = []
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
        return int(np.add.reduce(self._hashes(first, second, extra)))

    def _hashes(self, first: Ids, second: Ids, extra: Hashes | None) -> Hashes:
        rows = first.view(np.uint64) * self._keys[0] + second.view(np.uint64) * self._keys[1]
        if extra is not None:
            rows += extra
        return _mixed(rows)

    def finish(self, left_out: int = 0) -> None:
        """Put every file on disk, relations stored in both directions halved; `left_out` rows of the source are in
        none."""
        for number, (name, relation) in enumerate(self._relations.items()):
            if not relation.settled and relation.self_loops < relation.rows:
                self._settle(number, name, relation, left_out)
            self.written[edge_file(number)] = relation.file.finish()

    def _settle(self, number: int, name: str, relation: _Relation, left_out: int) -> None:
        """Halve the relation where its rows say that it is stored in both directions."""
        if (relation.forward_sum - relation.backward_sum) & _MASK == 0:
            self._halve(number, relation, Counter())
        elif left_out and _may_be_halved(relation.triples, left_out):
            lone, count = self._without_other_direction(relation)
            if count <= left_out and count * _PAIRED <= relation.rows:
                self.warnings.append(
                    f"relation '{name}' is stored in both directions but for {count} of {relation.rows} rows, since"
                    " rows were left out; each edge is written once"
                )
                self._halve(number, relation, lone)

    def _pair_hashes(self, block: EdgeRows, width: int) -> Hashes:
        """The same for a row and the one of the other direction."""
        before = canonical(self._type_ids, block.sources, block.targets)
        first, second = (
            np.where(before, *ends) for ends in ((block.sources, block.targets), (block.targets, block.sources))
        )
        extra = None
        if width > 2:
            texts = [line.split(b"\t", 2)[2] for line in block.lines()]
            extra = pl.Series(texts, dtype=pl.Binary).hash(int(self._keys[2])).to_numpy()
        return self._hashes(first, second, extra)

    def _without_other_direction(self, relation: _Relation) -> tuple[Counter[int], int]:
        """How many rows there are without one of the other direction, and the hashes of those whose source should not
        come first. Memory: 40 bytes an edge."""
        relation.file.finish()
        width = 2 + len(relation.attributes)
        hashes, signs = [], []
        for block in checked_edge_blocks(relation.file.path, width):
            before = canonical(self._type_ids, block.sources, block.targets)
            hashes.append(self._pair_hashes(block, width))
            signs.append(np.where(block.sources == block.targets, 0, np.where(before, 1, -1)).astype(np.int8))
        found, inverse = np.unique(np.concatenate(hashes), return_inverse=True)
        surplus = np.bincount(inverse, np.concatenate(signs), len(found)).astype(np.int64)
        lone = {int(key): -int(count) for key, count in zip(found[surplus < 0], surplus[surplus < 0], strict=True)}
        return Counter(lone), int(np.abs(surplus).sum())

    def _halve(self, number: int, relation: _Relation, lone: Counter[int]) -> None:
        """Keep rows whose source comes first by (type id, node id), and every second of equal self loops. Rows whose
        hashes are `lone` are turned round."""
        relation.file.finish()
        path = relation.file.path
        doubled = path.with_suffix(".doubled")
        path.rename(doubled)
        halved = _Relation(number, relation.attributes, self._files)
        seen: set[bytes] = set()
        width = 2 + len(relation.attributes)
        for block in checked_edge_blocks(doubled, width):
            keep = canonical(self._type_ids, block.sources, block.targets)
            loops = np.flatnonzero(block.sources == block.targets).tolist()
            lines = block.lines()
            for row in loops:
                keep[row] = lines[row] not in seen
                seen ^= {lines[row]}
            sources, targets = block.sources, block.targets
            for row in self._lone_rows(block, width, keep, lone):
                source, target, *more = lines[row].rstrip(b"\n").split(b"\t", 2)
                lines[row] = b"\t".join((target, source, *more)) + b"\n"
                keep[row] = True
                sources[row], targets[row] = targets[row], sources[row]
            halved.file.write(b"".join(compress(lines, keep.tolist())))
            halved.triples.update(count_triples(self._type_ids, sources[keep], targets[keep]))
            halved.rows += int(np.count_nonzero(keep))
        doubled.unlink()
        relation.file, relation.triples, relation.rows = halved.file, halved.triples, halved.rows
        relation.symmetric = True

    def _lone_rows(self, block: EdgeRows, width: int, keep: NDArray[np.bool_], lone: Counter[int]) -> Iterator[int]:
        """Rows that would go and are the only ones of their edge; `lone` counts down."""
        if not lone:
            return
        hashes = self._pair_hashes(block, width)
        wanted = np.isin(hashes, np.fromiter(lone, np.uint64, len(lone))) & ~keep & (block.sources != block.targets)
        for row in np.flatnonzero(wanted).tolist():
            if lone[int(hashes[row])]:
                lone[int(hashes[row])] -= 1
                yield row

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


def _may_be_halved(triples: Counter[tuple[int, int]], left_out: int) -> bool:
    """Whether the edges between two types are as many in both directions, but for those left out."""
    return sum(abs(count - triples[tail, head]) for (head, tail), count in triples.items()) <= 2 * left_out


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
