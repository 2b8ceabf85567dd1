import pytest

from keras_bert_layers._internal.files.wire_format import field, fixed32_field, read_fields, read_varint, varint


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32 - 1, 2**63 - 1, 2**64 - 1])
def test_varint(number):
    data = varint(number)
    assert read_varint(b"x" + data + b"y", 1) == (number, 1 + len(data))


def test_varint_that_does_not_end():
    with pytest.raises(ValueError, match="the data ends inside an integer"):
        read_varint(b"\x80\x80", 0)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_varint(b"\x80" * 11, 0)


def test_a_message_as_protocol_buffers_write_it():
    from google.protobuf.any_pb2 import Any
    from google.protobuf.wrappers_pb2 import Int64Value

    assert field(1, 300) == Int64Value(value=300).SerializeToString()
    assert field(1, b"url") + field(2, b"\0value") == Any(type_url="url", value=b"\0value").SerializeToString()


def test_fields():
    message = field(1, 7) + fixed32_field(6, 0xDEADBEEF) + field(2, field(3, 1)) + varint(9 << 3 | 1) + bytes(7) + b"\1"
    assert read_fields(message) == [(1, 7), (6, 0xDEADBEEF), (2, field(3, 1)), (9, 1 << 56)]


@pytest.mark.parametrize("message", [b"\x0b", b"\x12\x05abc", b"\x0d\x00\x00", b"\x08"])
def test_damaged(message):
    with pytest.raises(ValueError, match="a message is damaged"):
        read_fields(message)
