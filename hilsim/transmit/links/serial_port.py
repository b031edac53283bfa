"""A serial port to a flight controller, opened exclusively so that the nogil loop can read and write it.

- pyserial opens it, sets the rate (also rates without a constant) and takes the advisory lock; then TIOCEXCL keeps other programs out, because two
  readers would each get part of the bytes. A program that has it open already is found in /proc.
- DTR and RTS are asserted on opening and stay so: HUPCL is off, so closing does not drop them, which resets some boards.
- Raw, non-blocking, and a read waits for at least one byte (VMIN 1), so that reading nothing means an unplugged cable, not silence.
- A board may have another device name after replugging. Its name under /dev/serial/by-id is constant, and is resolved at each opening.
"""

import errno
import fcntl
import os
import termios
from dataclasses import dataclass
from pathlib import Path

import serial

from hilsim.errors import LinkError
from hilsim.transmit.links.line import Line, LineKind, SerialSpec
from hilsim.transmit.links.port_owners import port_holder

_BY_ID = Path("/dev/serial/by-id")
_TTY_CLASS = Path("/sys/class/tty")
_IFLAG, _OFLAG, _CFLAG, _LFLAG, _CC = 0, 1, 2, 3, 6
_ADVICE = {
    errno.ENOENT: "plug the device in, with a cable that carries data, and see ls /dev/serial/by-id",
    errno.ENXIO: "plug the device in, with a cable that carries data",
    errno.ENODEV: "plug the device in, with a cable that carries data",
    errno.EACCES: "join the group of the device (usermod -aG dialout USER) or run as a user that may",
    errno.EPERM: "join the group of the device (usermod -aG dialout USER) or run as a user that may",
    errno.EBUSY: "end the program that uses it",
    errno.EAGAIN: "end the program that uses it",
    errno.EIO: "unplug it and plug it in again",
    errno.ENOTTY: "name a serial device, such as one of /dev/serial/by-id",
}


@dataclass(frozen=True, kw_only=True)
class OpenPort:
    """An open serial port; the owner closes it.

    Attributes:
        port: pyserial's object; not for reading or writing.
        descriptor: Non-blocking file descriptor.
        device: Current device, such as ``/dev/ttyACM1``.
        name: Constant name for reopening it: its name under /dev/serial/by-id, else the path it was opened by.
        line: Meaning of its rate, if known.
    """

    port: serial.Serial
    descriptor: int
    device: str
    name: str
    line: Line

    def close(self) -> None:
        """Close the port; DTR and RTS keep their state."""
        self.port.close()


def open_serial(spec: SerialSpec, *, is_uart: bool | None = None, name: str | None = None, by_id: Path = _BY_ID) -> OpenPort:
    """Open a serial port, or reopen it.

    Args:
        spec: Specification of the port.
        is_uart: Whether it is a true UART, whose rate limits the link; None to detect it from the device.
        name: ``OpenPort.name`` of the previous opening, which takes precedence over the specification's port: that may be another device now.
        by_id: Directory of the constant names.

    Raises:
        LinkError: the port does not exist, is no serial port, is in use by another program, or is not permitted.
    """
    path = name or spec.port
    device = os.path.realpath(path)
    _refuse_if_held(path, device)
    port = serial.Serial(baudrate=spec.baud, exclusive=True)
    port.port = device
    try:
        port.open()
    except (OSError, ValueError, termios.error) as error:
        raise _fault(path, device, error) from error
    try:
        fcntl.ioctl(port.fd, termios.TIOCEXCL)
        _make_raw(port.fd)
        _refuse_if_held(path, device)  # another program may have opened it in between
    except (OSError, termios.error) as error:
        port.close()
        raise _fault(path, device, error) from error
    except LinkError:
        port.close()
        raise
    line = Line(kind_of(device) if is_uart is None else LineKind.UART if is_uart else LineKind.USB, spec.baud)
    return OpenPort(port=port, descriptor=port.fd, device=device, name=name or _lasting_name(spec.port, device, by_id), line=line)


def kind_of(path: str, tty_class: Path = _TTY_CLASS) -> LineKind:
    """Meaning of the rate of a serial device, from its driver, else from its name; a UART if neither decides.

    A USB device with the driver ``cdc_acm`` has no line of that rate, unless it is an adapter to a real UART, which cannot be detected here.
    """
    device = Path(os.path.realpath(path))
    if device.parent.name == "pts":
        return LineKind.USB
    try:
        driver = (tty_class / device.name / "device" / "driver").resolve(strict=True).name
    except OSError:
        driver = "cdc_acm" if device.name.startswith("ttyACM") else ""
    return LineKind.USB if driver == "cdc_acm" else LineKind.UART


def _lasting_name(path: str, device: str, by_id: Path) -> str:
    if Path(path).is_symlink():
        return path  # already a constant name, a link to a device
    try:
        names = sorted(by_id.iterdir())
    except OSError:
        return path
    return next((str(each) for each in names if os.path.realpath(each) == device), path)


def _make_raw(descriptor: int) -> None:
    """Set raw mode: no byte changed, none special, a read of at least one byte, no hang-up on closing."""
    settings = termios.tcgetattr(descriptor)
    settings[_IFLAG] = 0
    settings[_OFLAG] &= ~termios.OPOST
    settings[_LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    settings[_CFLAG] &= ~termios.HUPCL
    settings[_CC][termios.VMIN] = 1
    settings[_CC][termios.VTIME] = 0
    termios.tcsetattr(descriptor, termios.TCSANOW, settings)


def _refuse_if_held(path: str, device: str) -> None:
    holder = port_holder(device)
    if holder:
        raise LinkError(
            f"{path}: the port must be free, got it in use by {holder}: end it, or reach the controller through a ground-station port of hilsim"
        )


def _fault(path: str, device: str, error: Exception) -> LinkError:
    number = error.errno if isinstance(error, OSError) and error.errno else (error.args[0] if isinstance(error, termios.error) else 0)
    shown = path if path == device else f"{path} ({device})"
    if not number:
        return LinkError(f"{shown}: the port must open as a serial port, got {error}")
    advice = _ADVICE.get(number, "")
    return LinkError(f"{shown}: the port must open, got {os.strerror(number)}" + (f": {advice}" if advice else ""))
