"""The images of the Docker sandbox: each built from its Dockerfile at first use, found by its tag afterwards.

The tag hashes everything that goes in (the Dockerfile, the supervisor, rg, the base image's id), so a change of any of
them is a new image and nothing is ever rebuilt in place. The build needs no network; only a base image that isn't on
this machine yet is pulled.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

from docker import APIClient
from docker.errors import ImageNotFound
from docker.utils import parse_repository_tag

from sandbox.contract import Programs, SandboxUnavailable
from sandbox.daemon import FAILURES, reason
from sandbox.rg import rg_path

DEFAULT_BASE = "python:3.12-slim"
REPOSITORY = "kgshell-sandbox"
USER = 10001  # uid and gid of `agent`, as the Dockerfile makes it

_BASE_HINT = (
    "name a base image that is on this machine or can be pulled (with bash, coreutils and Python >= 3.11):"
    " --set sandbox.base=IMAGE or HARNESS_SANDBOX_BASE=IMAGE"
)
# By the programs that an image has: its Dockerfile, and the modules of this package that the build runs.
_SOURCES: Mapping[Programs, Sequence[str]] = {
    "all": ("Dockerfile",),
    "shell": ("Dockerfile.shell", "elf.py", "shell_root.py"),
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # Docker's names of architectures, and the kernel's

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Image:
    """An image that can be run: its tag and id, and the base image that it was made from."""

    tag: str
    id: str
    base: str
    base_id: str


def ensure_image(client: APIClient, base: str, progress: Progress, programs: Programs = "all") -> Image:
    """Find the image with these programs made from this base, or build it; `progress` gets a line per step.

    Processes of one installation that ask at the same time build once. Raises SandboxUnavailable if the base image
    can't be had or the build fails.
    """
    try:
        base_id, architecture = _base(client, base, progress)
        context = _context(architecture, programs)
        tag = f"{REPOSITORY}:{_digest(context, base_id)}"
        found = _find(client, tag)
        if found is None:
            with _one_builder():
                found = _find(client, tag) or _build(client, tag, base_id, context, progress)
    except FAILURES as error:
        raise SandboxUnavailable(f"the sandbox's image can't be made: {reason(error)}", _BASE_HINT) from error
    return Image(tag=tag, id=found, base=base, base_id=base_id)


def _base(client: APIClient, base: str, progress: Progress) -> tuple[str, str]:
    """(id, architecture) of the base image, pulled if it isn't there."""
    try:
        found = client.inspect_image(base)
    except ImageNotFound:
        progress(f"pulling the base image {base}")
        repository, tag = parse_repository_tag(base)
        try:
            failure = _follow(client.pull(repository, tag or "latest", stream=True, decode=True), _pull_line(progress))
        except FAILURES as error:
            failure = reason(error)
        if failure:
            raise SandboxUnavailable(
                f"the base image '{base}' is not on this machine and can't be pulled: {failure}", _BASE_HINT
            ) from None
        found = client.inspect_image(base)
    return str(found["Id"]), str(found["Architecture"])


def _context(architecture: str, programs: Programs) -> dict[str, tuple[int, bytes]]:
    """What the build sees: name -> (mode, content)."""
    machine = _MACHINES.get(architecture, architecture)
    package = files("sandbox")
    supervisor = package.joinpath("bin", f"supervisor-{machine}")
    if not supervisor.is_file():
        raise SandboxUnavailable(
            f"the Docker sandbox doesn't know the architecture '{architecture}'",
            f"possible: {', '.join(_MACHINES)}",
        )
    dockerfile, *modules = _SOURCES[programs]
    return {
        "Dockerfile": (0o644, package.joinpath(dockerfile).read_bytes()),
        **{f"sandbox/{name}": (0o644, package.joinpath(name).read_bytes()) for name in modules},
        "supervisor": (0o755, supervisor.read_bytes()),
        "rg": (0o755, rg_path().read_bytes()),
    }


def _digest(context: Mapping[str, tuple[int, bytes]], base_id: str) -> str:
    state = hashlib.sha256(base_id.encode())
    for name, (mode, content) in sorted(context.items()):
        state.update(f"\n{name} {mode:o} {len(content)}\n".encode())
        state.update(content)
    return state.hexdigest()[:16]


def _find(client: APIClient, tag: str) -> str | None:
    try:
        return str(client.inspect_image(tag)["Id"])
    except ImageNotFound:
        return None


@contextlib.contextmanager
def _one_builder() -> Iterator[None]:
    """Wait for other processes of this installation that build. The lock ends with the process that holds it."""
    with as_file(files("sandbox").joinpath("Dockerfile")) as path, path.open("rb") as held:
        # A file system that can't lock costs at worst a second build of the same image.
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _build(
    client: APIClient, tag: str, base_id: str, context: Mapping[str, tuple[int, bytes]], progress: Progress
) -> str:
    progress(f"building the sandbox's image {tag}")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, (mode, content) in context.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(content)
            archive.addfile(member, io.BytesIO(content))
    packed.seek(0)
    steps = client.build(
        fileobj=packed,
        custom_context=True,
        tag=tag,
        buildargs={"BASE": base_id, "STAGE": tag},
        labels={"kgshell": "1"},
        network_mode="none",
        rm=True,
        forcerm=True,
        decode=True,
    )
    try:
        failure = _follow(steps, lambda event: _step_line(event, progress))
    finally:
        for stage in client.images(filters={"label": f"kgshell.stage={tag}", "dangling": True}):
            client.remove_image(stage["Id"])
    if failure:
        raise SandboxUnavailable(f"the sandbox's image can't be made: {failure}", _BASE_HINT)
    return str(client.inspect_image(tag)["Id"])


def _follow(events: Iterable[Mapping[str, Any]], show: Callable[[Mapping[str, Any]], None]) -> str:
    """Read a build or pull to its end; what went wrong, or nothing.

    A failure is an event too; what the failed command printed before it says more.
    """
    printed, failure = "", ""
    for event in events:
        text = str(event.get("stream", "")).strip()
        if "error" in event:
            failure = printed or str(event["error"]).strip()
        elif text and not text.startswith(("--->", "Removing intermediate container")):
            printed = "" if text.lower().startswith("step ") else text
        show(event)
    return failure


def _step_line(event: Mapping[str, Any], progress: Progress) -> None:
    """Docker writes `Step 2/7 : FROM …`, Podman `STEP 2/7: FROM …`; a RUN line goes on and on."""
    text = str(event.get("stream", "")).strip()
    if text.lower().startswith("step "):
        progress(text.splitlines()[0][:60])


def _pull_line(progress: Progress) -> Callable[[Mapping[str, Any]], None]:
    """Shows how many layers are there, each time one more is."""
    layers: dict[str, bool] = {}

    def show(event: Mapping[str, Any]) -> None:
        layer, status = event.get("id"), str(event.get("status", ""))
        if not layer or status.startswith("Pulling from"):
            return
        before = sum(layers.values())
        layers[str(layer)] = status in {"Pull complete", "Already exists"}
        if sum(layers.values()) > before:
            progress(f"layers pulled: {sum(layers.values())} of {len(layers)}")

    return show
