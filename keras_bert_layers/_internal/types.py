"""Named types of signatures: what flows between the parts of the package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict


class Tensor(Protocol):
    """A NumPy array, a tensor of the backend, or a symbolic tensor of Keras; a column of pandas or polars too."""

    @property
    def shape(self) -> Any:
        """The sizes of the axes; None where TensorFlow does not know one."""

    @property
    def dtype(self) -> Any:
        """The kind of the values."""

    def __getitem__(self, index: Any, /) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...


#: The sizes of axes, such as `(batch, sequence, hidden_dim)`; None for any.
Shape: TypeAlias = tuple[int | None, ...]
#: Inputs of a model by name, such as `"token_ids"`, `"segment_ids"` and `"padding_mask"`.
Ids: TypeAlias = Mapping[str, Tensor]
#: Outputs of a model: one tensor, several by name, or a list of them.
Outputs: TypeAlias = Tensor | Mapping[str, Any] | Sequence[Tensor]
#: Texts: one string, a list or a column of strings, or a tensor of strings.
Strings: TypeAlias = str | bytes | Sequence[str] | Sequence[bytes] | Tensor
#: Checked texts: a column, or a tuple of columns of equally many rows.
Columns: TypeAlias = Tensor | tuple[Tensor, ...]
#: What a user holds: texts, a tuple of columns of them, ids, a `tf.data.Dataset`, a table, or an iterable of rows.
Rows: TypeAlias = Strings | tuple[Any, ...] | Ids | Iterable[Any]
#: Labels or weights: a list, a column or a tensor, or several by name.
Labels: TypeAlias = Sequence[Any] | Tensor | Mapping[str, Any]


class LayerOptions(TypedDict, total=False):
    """The arguments of every Keras layer."""

    name: str | None
    dtype: Any
    trainable: bool
    activity_regularizer: Any
    autocast: bool
