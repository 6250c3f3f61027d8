"""Writer and Reader: the only place where numbers become bytes; every read is bounded."""

import struct

from tvm_neuron.errors import NeffError

_ONE_BYTE = [bytes([value]) for value in range(0x80)]  # most numbers of a program are that small


class Writer:
    """Collects little-endian fields."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def uint(self, value: int) -> None:
        """An unsigned number of up to 64 bits, seven bits a byte (LEB128)."""
        if 0 <= value < len(_ONE_BYTE):
            self.parts.append(_ONE_BYTE[value])
            return
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        self.parts.append(bytes(out))

    def sint(self, value: int) -> None:
        """A signed number, zigzag-coded."""
        self.uint(value << 1 if value >= 0 else (-value << 1) - 1)

    def float(self, value: float) -> None:
        """An IEEE float32."""
        self.parts.append(struct.pack("<f", value))

    def text(self, value: str) -> None:
        """A UTF-8 string with its length."""
        data = value.encode()
        self.uint(len(data))
        self.parts.append(data)

    def bytes(self) -> bytes:
        """All that was written."""
        return b"".join(self.parts)


class Reader:
    """Reads what a Writer wrote.

    Raises:
        NeffError: the data end early or a number is longer than 64 bits.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    @property
    def is_done(self) -> bool:
        """Whether everything was read."""
        return self.position >= len(self.data)

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        piece = self.data[self.position : self.position + size]
        if len(piece) != size:
            raise NeffError(f"data end at byte {len(self.data)}, {size} bytes wanted at {self.position}")
        self.position += size
        return piece

    def uint(self) -> int:
        """See Writer.uint."""
        data, at = self.data, self.position  # the loop is where most of a NEFF's loading time goes
        value = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            if byte < 0x80:
                self.position = at
                return value | byte << shift
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise NeffError(f"number at byte {at} is longer than 64 bits")
        raise NeffError(f"data end at byte {at} inside a number that starts at {self.position}")

    def sint(self) -> int:
        """See Writer.sint."""
        value = self.uint()
        return -((value + 1) >> 1) if value & 1 else value >> 1

    def float(self) -> float:
        """See Writer.float."""
        return float(struct.unpack("<f", self.take(4))[0])

    def count(self, limit: int, what: str) -> int:
        """A number of things to follow, at most `limit`."""
        value = self.uint()
        if value > limit:
            raise NeffError(f"{value} {what} at byte {self.position}; at most {limit} can be")
        return value

    def text(self) -> str:
        """See Writer.text."""
        try:
            return self.take(self.count(1 << 20, "bytes of text")).decode()
        except UnicodeDecodeError as error:
            raise NeffError(f"text at byte {self.position} is not UTF-8") from error
