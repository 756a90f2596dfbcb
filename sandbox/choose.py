"""Which sandbox this machine can have, found by running one."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.contract import Backend, SandboxUnavailable


def _silent(_: str) -> None:
    pass


def choose(kind: str, *, base: str | None = None, notice: Callable[[str], None] = _silent) -> Backend:
    """The backend of this kind. `base` is Docker's base image; `notice` gets lines for a person (an image being built).

    "auto" takes Docker where a daemon answers and the image can be had, else bubblewrap, and says so. Raises
    SandboxUnavailable if there is none of the kind: commands never run without a sandbox.
    """
    if kind == "docker":
        return _docker(base, notice)
    if kind == "bwrap":
        return _bwrap()
    if kind != "auto":
        raise SandboxUnavailable(f"there is no sandbox '{kind}'", "possible: auto, docker, bwrap")
    try:
        return _docker(base, notice)
    except SandboxUnavailable as error:
        no_docker = error
    try:
        backend = _bwrap()
    except SandboxUnavailable as error:
        raise SandboxUnavailable(
            f"no sandbox can be had: {no_docker}; {error}", error.hint or no_docker.hint
        ) from error
    notice(f"using the bubblewrap sandbox: {no_docker}")
    return backend


# The backends are imported when they are asked for: the Docker SDK takes a tenth of a second.


def _docker(base: str | None, notice: Callable[[str], None]) -> Backend:
    from sandbox.docker import DockerBackend  # noqa: PLC0415

    return DockerBackend(base=base, notice=notice)


def _bwrap() -> Backend:
    from sandbox.bwrap import BwrapBackend  # noqa: PLC0415

    return BwrapBackend()
