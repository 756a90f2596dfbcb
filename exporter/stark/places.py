"""Where a graph's files lie: in the layout of the Hugging Face repository, or as STaRK's own loader lays them out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exporter.stark.dataset import Dataset

ARCHIVE, FOLDER, NODES = "processed.zip", "processed", "node_info.pkl"
GRAPH = (NODES, "node_types.pt", "node_type_dict.pkl", "edge_index.pt", "edge_types.pt", "edge_type_dict.pkl")
QUESTIONS, HUMAN = "stark_qa/stark_qa.csv", "stark_qa/stark_qa_human_generated_eval.csv"
SPLITS = ("train", "val", "test", "test-0.1")


@dataclass(frozen=True)
class Place:
    """`processed` is processed.zip or the folder that it unpacks to; `qa` the folder with stark_qa/ and split/."""

    processed: Path
    qa: Path | None

    def files(self, dataset: Dataset) -> list[Path]:
        """Every file that is read, those of the graph first."""
        return [*self.graph_files(dataset).values(), *self.question_files().values()]

    def graph_files(self, dataset: Dataset) -> dict[str, Path]:
        """The archive, or what is read of the folder, by what the manifest calls it."""
        if self.processed.is_file():
            return {ARCHIVE: self.processed}
        folder = Path(folder_of(dataset, self.processed) or "")
        there = [folder / name for name in GRAPH if (self.processed / folder / name).is_file()]
        return {f"{FOLDER}/{path.as_posix()}": self.processed / path for path in there}

    def question_files(self) -> dict[str, Path]:
        """The files of questions, likewise."""
        if self.qa is None:
            return {}
        named = (QUESTIONS, HUMAN, *(f"split/{split}.index" for split in SPLITS))
        return {name: self.qa / name for name in named if (self.qa / name).is_file()}


def find(dataset: Dataset, root: Path) -> Place | None:
    """The graph's files below `root`: in skb/<name> and qa/<name> (Hugging Face), in <name> (STaRK's root folder), or
    in `root` itself. None where there is no graph; questions may be missing."""
    name = dataset.name
    for folder in (root / "skb" / name, root / name, root):
        for processed in (folder / ARCHIVE, folder / FOLDER):
            if processed.is_file() or has_nodes(dataset, processed):
                places = (root / "qa" / name, root / name, folder)
                return Place(processed, next((qa for qa in places if (qa / QUESTIONS).is_file()), None))
    return None


def has_nodes(dataset: Dataset, processed: Path) -> bool:
    """Whether the folder `processed` holds an unpacked graph."""
    return folder_of(dataset, processed) is not None


def folder_of(dataset: Dataset, processed: Path) -> str | None:
    """The first of the dataset's folders below the unpacked `processed` that has nodes."""
    return next((folder for folder in dataset.folders if (processed / folder / NODES).is_file()), None)
