"""The Docker sandbox: one container per attempt, on any daemon that speaks Docker's API.

What it isolates. A container has its own mount, PID, network, IPC and UTS namespaces and control groups. Its root file
system is read-only and holds the image alone; the graph is mounted read-only; what can be written is /scratch, /tmp and
/dev/shm, each of limited size. There is no network interface but loopback. Commands run as an unprivileged user without
capabilities, can't gain privileges or make namespaces, and see no process but their own. Control groups limit memory,
swap, processes and the share of the CPUs for all processes together; the supervisor limits CPU time and file sizes. The
supervisor is the container's PID 1 and can't be signalled, read, traced or written to from inside.

With shell tools alone (`Spec.programs`) it is another image, which holds only these and what they need, and nothing can
be executed that was not there: `shell_root` says how, and what that does not close.

What it does not isolate. The kernel is shared: a hole in it is a hole here. In /proc/self/mountinfo the host paths of
what is mounted can be read, and what /proc says of the machine as a whole: the kernel's version, command line,
configuration, settings and counters, CPUs, memory, load, disks, file locks (by device and inode, whose they are is
hidden), and how many kernel keys each user has. Docker itself covers the keys, timers and what else it knows of. The
disk's bandwidth is not limited. Who may use the daemon is as good as root on its machine; a sandbox never gets at its
socket. Rootless Docker and Podman have control groups only where version 2 of them is delegated to the user; elsewhere
the supervisor's watchdog alone limits memory and processes, and nothing the share of the CPUs.

Twins share folders in memory, volumes that the daemon makes with the first container. Whether something in them can be
executed is as the first one's programs have it, for both. What one of them has written there is charged to it, and
after its end to nobody; their size bounds that.

Nothing is left behind. The daemon closes the supervisor's standard input when the harness's connection ends, however it
ends; the supervisor then exits, and the daemon removes the container. Labels name the harness process, so that
`orphans` finds a container that a dead one had made and not yet started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from docker.types import LogConfig, Mount

from sandbox import volumes
from sandbox.client import WRITABLE, Client, Setup
from sandbox.contract import (
    SHARED,
    Limits,
    Programs,
    Sandbox,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    ShellEnd,
    Spec,
)
from sandbox.daemon import FAILURES, connect, reason
from sandbox.image import DEFAULT_BASE, USER, Image, ensure_image
from sandbox.owner import labels
from sandbox.readable import check_readable
from sandbox.supervised import SupervisedSandbox
from sandbox.terminal import shell_in

_END_SECONDS = 5.0  # to wait for a container that has been told to end, before it is killed
_FRAME = struct.Struct(">BxxxL")  # before each piece of a container's output: which stream, how many bytes
_STDOUT = 1

# What a sandbox says about itself: the limits of its control groups (version 2, else 1), its Python and rg.
_SELF_DESCRIPTION = """
first() { cat "/sys/fs/cgroup/$1" 2>/dev/null || cat "/sys/fs/cgroup/$2" 2>/dev/null || echo none; }
first memory.max memory/memory.limit_in_bytes
first pids.max pids/pids.max
first cpu.max cpu/cpu.cfs_quota_us
python3 -c 'import platform; print(platform.python_version())'
rg --version | head -n 1
"""


@dataclass(frozen=True)
class _Shared:
    """What a twin needs: the container whose volumes it gets."""

    container: str


class DockerBackend:
    """Opens containers on the daemon that DOCKER_HOST names, else on the local one."""

    kind = "docker"

    def __init__(self, *, base: str | None = None, notice: Callable[[str], None]) -> None:
        """Find the daemon, its image (built where it has to be, with lines to `notice`) and run it once.

        `base` is the base image; without it HARNESS_SANDBOX_BASE, else a default. Raises SandboxUnavailable.
        """
        self._client = connect()
        try:
            self._notice = notice
            self._base = base or os.environ.get("HARNESS_SANDBOX_BASE") or DEFAULT_BASE
            self._images: dict[Programs, Image] = {}
            self._image("all")
            self._info = self._client.info()
            self._about = self._try()
        except (*FAILURES, SandboxError) as error:
            self._client.close()
            if isinstance(error, SandboxUnavailable):
                raise
            raise SandboxUnavailable(
                f"Docker can't run a sandbox: {reason(error)}", "see `docker info`, or take --sandbox bwrap"
            ) from error

    def open(self, spec: Spec, twin_of: Sandbox | None = None) -> SupervisedSandbox:
        check_readable(spec.shown.values())
        try:
            if twin_of is None:
                return self._open(spec)
            if not isinstance(twin_of, SupervisedSandbox) or not isinstance(first := twin_of.shared, _Shared):
                raise ValueError("only a sandbox of this backend that was opened to be shared can have a twin")
            sandbox = self._open(spec, first)
        except FAILURES as error:
            raise SandboxLost(f"the container can't be opened: {reason(error)}") from error
        twin_of.add_twin(sandbox)
        return sandbox

    def shell(self, spec: Spec) -> ShellEnd:
        return shell_in(self.open, spec)

    def describe(self) -> dict[str, object]:
        """As the contract says; `limits` are those that control groups hold, found in a container."""
        image = self._image("all")
        return {
            "kind": self.kind,
            "engine": self._info.get("ServerVersion"),
            "api": self._client.api_version,
            "kernel": self._info.get("KernelVersion"),
            "rootless": "name=rootless" in (self._info.get("SecurityOptions") or ())
            or bool(self._info.get("Rootless")),  # Podman
            "cgroups": self._info.get("CgroupVersion"),
            "image": image.tag,
            "image_id": image.id,
            **{f"{name}_image_id": other.id for name, other in self._images.items() if other is not image},
            "base": image.base,
            "base_id": image.base_id,
            **self._about,
        }

    def _image(self, programs: Programs) -> Image:
        """The image with these programs, built when it is first asked for."""
        if programs not in self._images:
            self._images[programs] = ensure_image(self._client, self._base, self._notice, programs)
        return self._images[programs]

    def _try(self) -> dict[str, object]:
        """Open a sandbox and have it say what is in it."""
        spec = Spec(graph=None)
        with self._open(spec) as sandbox:
            result = sandbox.exec(_SELF_DESCRIPTION, timeout=60, cap=4000)
        lines = result.head.decode(errors="replace").splitlines()
        if result.exit_code != 0 or len(lines) != 5:
            raise SandboxLost(f"no working bash, Python and rg in it: {' '.join(lines)[:500]}")
        memory, pids, cpus = lines[:3]
        held = {
            "memory": memory == str(spec.limits.memory),
            "pids": pids == str(spec.limits.pids + 1),
            "cpus": cpus.split()[0] not in {"max", "-1", "none"},
        }
        return {"limits": [name for name, holds in held.items() if holds], "python": lines[3], "rg": lines[4]}

    def _open(self, spec: Spec, first: _Shared | None = None) -> SupervisedSandbox:
        whole = spec.programs == "all"
        setup = Setup(
            spec.limits,
            env=spec.env,
            tmpfs=[path for path in WRITABLE if not first or path not in SHARED],
            noexec=not whole,
            fixed_code=not whole,
        )
        ours = labels(spec.labels)
        writable, tmpfs = self._writable(spec, first, "exec" if whole else "noexec", ours)
        with ExitStack() as stack:
            container = cast(
                str,
                self._client.create_container(
                    self._image(spec.programs).id,
                    name=f"kgshell-{secrets.token_hex(6)}",
                    entrypoint=["/sandbox/supervisor"],
                    user=f"{USER}:{USER}",
                    working_dir="/",
                    hostname="sandbox",
                    network_disabled=True,
                    stdin_open=True,  # and closed for good when the connection that is attached to it ends
                    labels=ours,
                    host_config=self._host_config(spec, writable, tmpfs),
                )["Id"],
            )
            stack.callback(self._remove, container)
            streams = _Attached(
                self._client.attach_socket(container, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            )
            stack.callback(streams.close)
            self._client.start(container)
            client = Client(streams, setup)
            if spec.shared:
                check_volumes(client, spec.limits)
            stack.pop_all()
        shared = _Shared(container) if spec.shared else None
        return SupervisedSandbox(
            self.kind, client, lambda: self._end(container, streams, wait=first is not None), shared
        )

    def _writable(
        self, spec: Spec, first: _Shared | None, execution: str, ours: Mapping[str, str]
    ) -> tuple[list[Mount], dict[str, str]]:
        """What can be written, as volumes and as tmpfs, and two folders that Podman would make writable without end."""
        tmpfs = {"/run": "size=64k,mode=755", "/var/tmp": "size=64k,mode=755"}  # noqa: S108 - paths in the container
        if first:
            return volumes.of(self._client, first.container), tmpfs
        if spec.shared:
            return volumes.made_for(spec.limits, execution, ours), tmpfs
        sizes = zip(SHARED, (spec.limits.scratch, spec.limits.tmp), strict=True)
        return [], {**{path: f"size={size},mode=1777,{execution}" for path, size in sizes}, **tmpfs}

    def _host_config(self, spec: Spec, writable: list[Mount], tmpfs: dict[str, str]) -> dict[str, Any]:
        limits = spec.limits
        shown = [Mount(inside, str(path.resolve()), type="bind", read_only=True) for inside, path in spec.shown.items()]
        return cast(
            dict[str, Any],
            self._client.create_host_config(
                auto_remove=True,
                network_mode="none",
                ipc_mode="private",
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges:true"],
                mounts=[*shown, *writable],
                tmpfs=tmpfs,
                shm_size=limits.shm,
                mem_limit=limits.memory,
                memswap_limit=limits.memory,  # memory and swap together: no swap
                pids_limit=limits.pids + 1,  # the supervisor is one
                nano_cpus=int(min(limits.cpus, int(self._info["NCPU"])) * 1e9),
                log_config=LogConfig(type="none"),
            ),
        )

    def _end(self, container: str, streams: _Attached, wait: bool) -> None:
        """End the supervisor's standard input. The daemon removes the container; if it doesn't end, we do.

        `wait` until it is removed, as a twin must be before the daemon can remove its first's volumes.
        """
        try:
            if not streams.finish(_END_SECONDS):
                self._remove(container)
            elif wait:
                with contextlib.suppress(*FAILURES):
                    self._client.wait(container, timeout=int(_END_SECONDS), condition="removed")
        finally:
            streams.close()

    def _remove(self, container: str) -> None:
        with contextlib.suppress(*FAILURES):
            self._client.remove_container(container, v=True, force=True)


class _Attached:
    """The transport: a container's standard streams over one connection, the output in the daemon's frames."""

    def __init__(self, connection: Any) -> None:
        """`connection` is what the SDK's attach_socket gives: a socket, or a thin file around one."""
        self._connection = connection
        self._socket: socket.socket = getattr(connection, "_sock", connection)
        self._receiving = threading.Lock()
        self._header = b""
        self._stream = self._left = 0  # of the frame that is being received

    def send(self, data: bytes, timeout: float) -> None:
        self._socket.settimeout(timeout)
        self._socket.sendall(data)

    def receive(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            with self._receiving:
                self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
                data = self._socket.recv(1 << 18)
            if not data:
                return b""
            if output := self._unpack(data):
                return output

    def finish(self, timeout: float) -> bool:
        """Say that nothing more will be sent, and wait until the container's output has ended: True if it has."""
        deadline = time.monotonic() + timeout
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(1 << 18):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True  # the connection is gone, and standard input with it
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends a `receive` in another thread
        with self._receiving:  # whose descriptor must not become another file's meanwhile
            self._connection.close()
            self._socket.close()

    def _unpack(self, data: bytes) -> bytes:
        """What the container wrote to its standard output, out of the frames that `data` is a piece of."""
        parts = []
        at = 0
        while at < len(data):
            if not self._left:
                taken = data[at : at + _FRAME.size - len(self._header)]
                self._header += taken
                at += len(taken)
                if len(self._header) == _FRAME.size:
                    self._stream, self._left = _FRAME.unpack(self._header)
                    self._header = b""
                continue
            part = data[at : at + self._left]
            if self._stream == _STDOUT:
                parts.append(part)
            self._left -= len(part)
            at += len(part)
        return b"".join(parts)


def check_volumes(client: Client, limits: Limits) -> None:
    """Raise SandboxUnavailable if the engine did not make the shared folders as they were asked for."""
    said = client.exec(volumes.SEEN, timeout=60, cap=1000).head.decode(errors="replace")
    if said != volumes.seen(limits):
        raise SandboxUnavailable(
            f"this container engine makes no volumes in memory of a limited size: {' '.join(said.split())}",
            "take --sandbox bwrap",
        )
