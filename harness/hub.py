"""Downloads files of a dataset repository with huggingface_hub, into a folder laid out as the repository is.

huggingface_hub's own download to its cache starts anew in each process; here what is on disk is kept, so that an
archive of gigabytes survives a lost connection, Ctrl-C and a reboot. A file appears when it is complete and has the
sha256 that the repository says.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
from filelock import FileLock, Timeout
from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url
from huggingface_hub.file_download import HfFileMetadata, http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

from harness.errors import InfrastructureError, UserError

_SHA256 = re.compile("[0-9a-f]{64}")
_AGAIN = "the same command goes on where it stopped"


class Repository:
    """A dataset repository at one revision."""

    def __init__(self, name: str, revision: str) -> None:
        self._name = name
        self._revision = revision

    def download(
        self, folder: Path, needed: Sequence[str], optional: Sequence[str], turn: Callable[[bool], None]
    ) -> None:
        """Put the files into `folder` where they aren't there yet; optional ones may not exist. One process at a time:
        `turn` is called with False where there is another, and with True where there is something left to download.

        Raises UserError where the endpoint doesn't have them, InfrastructureError where the network or it fails.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / ".download.lock", turn), self._explained():
            if not all((folder / file).exists() for file in needed):
                turn(True)
            for file in optional:
                if not (folder / file).exists():
                    self._try(folder, file)
            for file in needed:
                if not (folder / file).exists():
                    self._fetch(folder, file)

    def _try(self, folder: Path, file: str) -> None:
        try:
            self._fetch(folder, file)
        except errors.RemoteEntryNotFoundError:
            return

    def _fetch(self, folder: Path, file: str) -> None:
        url = hf_hub_url(self._name, file, repo_type="dataset", revision=self._revision)
        meta = get_hf_file_metadata(url)
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        # Named after the content, so that a part of another version is never gone on with.
        part = path.with_name(f".{path.name}.{hashlib.sha256((meta.etag or '').encode()).hexdigest()[:16]}.part")
        with part.open("ab") as kept:
            http_get(
                meta.location,
                kept,
                resume_size=kept.tell(),
                headers=build_hf_headers() if meta.location == url else {},  # a token is for the hub alone
                expected_size=meta.size,
                displayed_filename=file,
            )
        self._verify(part, meta, file)
        part.rename(path)

    def _verify(self, part: Path, meta: HfFileMetadata, file: str) -> None:
        if meta.etag is None or not _SHA256.fullmatch(meta.etag):  # only large files have theirs as a tag
            return
        with part.open("rb") as downloaded:
            found = hashlib.file_digest(downloaded, "sha256").hexdigest()
        if found != meta.etag:
            part.unlink()
            raise InfrastructureError(
                f"{file} from {constants.ENDPOINT} has the sha256 {found}, not {meta.etag}", "download it again"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in our terms what huggingface_hub or the network raises."""
        try:
            yield
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.RemoteEntryNotFoundError) as error:
            raise UserError(
                f"{constants.ENDPOINT} does not have the dataset {self._name} at revision {self._revision}, or not all"
                f" of it: {_first_line(error)}",
                "correct HF_ENDPOINT if it names a mirror",
            ) from error
        except (errors.HfHubHTTPError, httpx2.HTTPError) as error:
            raise InfrastructureError(
                f"the download of {self._name} from {constants.ENDPOINT} failed: {_first_line(error)}", _AGAIN
            ) from error
        except OSError as error:
            if error.errno is not None:
                raise
            # huggingface_hub's own: a file of another size than announced
            raise InfrastructureError(f"the download of {self._name} failed: {_first_line(error)}", _AGAIN) from error


@contextmanager
def _locked(path: Path, turn: Callable[[bool], None]) -> Iterator[None]:
    lock = FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        turn(False)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
