"""The GPU that casts rays for sensors of a running rig: choose its sensors, and move them to the cores if it fails."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from hilsim.config.tables.render import Backend
from hilsim.daemon.parts import Say
from hilsim.daemon.streaming.pacer import Pacer
from hilsim.daemon.streaming.stream import Streaming
from hilsim.errors import DeviceError, TransmitError
from hilsim.streaming.render_state import RenderCounter
from hilsim.telemetry.faults import Fault, Level
from hilsim.world.render.renderer import DeviceRenderer


def open_gpu() -> DeviceRenderer:
    """Open the machine's GPU.

    Raises:
        DeviceError: the machine has no usable GPU.
    """
    from hilsim.world.render.cuda import CudaRenderer  # noqa: PLC0415 - imports CUDA

    return CudaRenderer()


@dataclass(kw_only=True, eq=False)
class RenderDevice:
    """Device that casts rays instead of the cores.

    Attributes:
        backend: Backend that the rig requests.
        say: Callback that reports each decision.
        lock: Lock of the pacer, held while sensors are moved to or from the device.
    """

    backend: Backend
    say: Say
    lock: threading.Lock
    _renderer: DeviceRenderer | None = None
    _names: set[str] = field(default_factory=set)
    _reason: str = ""

    def of(self, name: str) -> DeviceRenderer | None:
        """Renderer that casts a sensor's rays from its start on; None: the cores."""
        if self.backend == "cuda" and not self._reason:
            self._names.add(name)
        return self._open() if name in self._names else None

    def settle(self, streams: Mapping[str, Streaming], pacer: Pacer) -> None:
        """Warm and measure every sensor before it starts; if the cores cannot render everything, move the sensors to the device that cost less there."""
        self._measure(streams)
        if self.backend == "auto" and not pacer.fits(streams) and self._open() is not None:
            for name, streaming in streams.items():
                if streaming.rays > 1:
                    self._try(name, streaming)
        if self._renderer is not None and self._names:
            self.say("rendering.on_device", {"device": self._renderer.name, "sensors": sorted(self._names)})

    def _try(self, name: str, streaming: Streaming) -> None:
        """Move a sensor to the device if a packet takes less of the cores' time there: firing, receiving and Python's calls stay with the cores."""
        render_thread = streaming.render_thread
        counters = render_thread.state.counters
        on_cores_ns = counters[RenderCounter.ESTIMATE_NS]
        self._names.add(name)
        render_thread.renderer = self._renderer
        self._measure({name: streaming})
        if render_thread.renderer is not None and counters[RenderCounter.ESTIMATE_NS] >= on_cores_ns:
            self._names.remove(name)
            render_thread.renderer, counters[RenderCounter.ESTIMATE_NS] = None, on_cores_ns

    def pace(self, streams: Mapping[str, Streaming]) -> None:
        """Move the sensors of a device that has failed to the cores."""
        with self.lock:
            failed = [streaming for streaming in streams.values() if streaming.render_thread.fault is not None and not streaming.render_thread.alive]
            for streaming in failed:
                self._give_up(streaming.render_thread.fault)
                try:
                    streaming.render_thread = streaming.render_thread.recover()
                except TransmitError as error:
                    self.say("rendering.recovery_refused", {"sensor": streaming.spec.name, "reason": str(error)})

    def fault(self) -> Fault | None:
        """Fault of the device, if sensors that should be rendered on it are not."""
        if not self._reason or (self.backend == "auto" and not self._names):
            return None
        return Fault(key="device_missing", text=f"{self._reason}; the cores cast the rays", level=Level.DEGRADED)

    def _open(self) -> DeviceRenderer | None:
        if self._renderer is None and not self._reason:
            try:
                self._renderer = open_gpu()
            except DeviceError as error:
                self._give_up(error)
        return self._renderer

    def _give_up(self, error: DeviceError | None) -> None:
        if not self._reason:
            self._reason = str(error)
            if self._names:
                self.say("rendering.device_refused", {"reason": self._reason})
        self._renderer = None

    def _measure(self, streams: Mapping[str, Streaming]) -> None:
        for streaming in streams.values():
            render_thread = streaming.render_thread
            render_thread.warm()
            render_thread.measure()
            if render_thread.fault is not None:
                self._give_up(render_thread.fault)
            if render_thread.renderer is not None and self._renderer is None:
                render_thread.renderer = render_thread.fault = None
                render_thread.warm()
                render_thread.measure()
