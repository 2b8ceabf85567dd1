"""Several devices and machines: Keras's distributions on JAX, for these models."""

from __future__ import annotations

import os
from collections.abc import Mapping

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.config import BertConfig

_INITIALIZE, _LAYOUT_MAP = "distribution.initialize", "bert_layout_map"
# What a launcher sets for each of several processes: Keras, JAX on Open MPI, SLURM and TPU.
_NUM_PROCESSES = ("KERAS_DISTRIBUTION_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_HOSTS = ("TPU_PROCESS_ADDRESSES", "TPU_WORKER_HOSTNAMES")


def initialize(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> keras.distribution.Distribution | None:
    """Joins the processes of a job, and divides batches among all of their devices; call it before a model is made.

    Every process calls it, with the same arguments but for `process_id`. Without arguments, it reads what the launcher
    has set: `KERAS_DISTRIBUTION_JOB_ADDRESSES` and the like, SLURM, Open MPI or a TPU slice. In a single process it
    divides batches among the devices of this machine; if there is one, it does nothing.

    All processes get one random seed, unless one was set before.

    Args:
        coordinator: the address of the first process, such as `"10.0.0.1:1234"`.
        num_processes: how many processes there are.
        process_id: the index of this process, from 0 on.

    Returns:
        The `keras.distribution.DataParallel` that is set, or None for a single device.

    Raises:
        RuntimeError: Keras does not run on JAX.
        ValueError: some of the arguments are missing, or an index that is too large.

    References:
        `keras.distribution.initialize` and `jax.distributed.initialize`, which this calls.
    """
    given = {"coordinator": coordinator, "num_processes": num_processes, "process_id": process_id}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < len(given):
        raise ValueError(checks.message(_INITIALIZE, missing[0], "be given with the others, or none of them", None))
    if keras.backend.backend() != "jax":
        cure = 'Set the environment variable KERAS_BACKEND to "jax" before Python starts.'
        raise RuntimeError(f"`{_INITIALIZE}` needs Keras on JAX. Received: {keras.backend.backend()}. {cure}")
    if num_processes is not None and process_id is not None:
        checks.positive_integer(_INITIALIZE, "num_processes", num_processes)
        if checks.whole_number(_INITIALIZE, "process_id", process_id) >= num_processes:
            raise ValueError(checks.message(_INITIALIZE, "process_id", f"be less than {num_processes}", process_id))
    if (num_processes or _launched(os.environ)) > 1:
        keras.distribution.initialize(coordinator, num_processes, process_id)
    if len(keras.distribution.list_devices()) == 1:
        return None
    distribution = keras.distribution.DataParallel()
    keras.distribution.set_distribution(distribution)
    return distribution


def _launched(variables: Mapping[str, str]) -> int:
    """How many processes a launcher says it has started; 1 where there is none."""
    counts = [int(variables[name]) for name in _NUM_PROCESSES if variables.get(name, "").isdecimal()]
    return max([1, *counts, *(len(variables[name].split(",")) for name in _HOSTS if name in variables)])


def bert_layout_map(
    device_mesh: keras.distribution.DeviceMesh, config: BertConfig | None = None
) -> keras.distribution.LayoutMap:
    """How `keras.distribution.ModelParallel` divides the weights of a task, and with them the optimizer's.

    The last axis of the mesh divides the token embedding by tokens, the dense layers of query, key and value and the
    intermediate ones by their outputs, and the dense layers after them by their inputs, so that a block needs two sums
    over devices. Everything else is on all devices. The first axis divides batches.

    Args:
        device_mesh: of two axes, such as `DeviceMesh((2, 4), ("batch", "model"))`.
        config: the encoder's. If the devices do not divide its vocabulary, the token embedding is divided by columns.
            Without a config it is divided by columns too.

    Returns:
        The layouts, for `ModelParallel(layout_map=..., batch_dim_name=...)`.

    Raises:
        TypeError: not a `DeviceMesh`.
        ValueError: a mesh of another number of axes; devices that do not divide the heads or a dimension of the config.

    Examples:
        >>> import keras, keras_bert_layers as kbl
        >>> devices = keras.distribution.list_devices("cpu")[:1]
        >>> mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), devices)
        >>> sorted(bert_layout_map(mesh))[:1]
        ['.*/?attention/output/kernel']

    References:
        Shoeybi et al. 2019, Megatron-LM, https://arxiv.org/abs/1909.08053, section 3.
    """
    checks.instance(_LAYOUT_MAP, "device_mesh", device_mesh, keras.distribution.DeviceMesh)
    if len(device_mesh.shape) != 2:
        raise ValueError(checks.message(_LAYOUT_MAP, "device_mesh", "have two axes", device_mesh.shape))
    model, num_devices = device_mesh.axis_names[-1], device_mesh.shape[-1]
    for name in ("hidden_dim", "num_heads", "intermediate_dim") if config is not None else ():
        if (size := getattr(config, name)) % num_devices:
            rule = f"divide `{name}`, which is {size}, by its last axis"
            raise ValueError(checks.message(_LAYOUT_MAP, "device_mesh", rule, device_mesh.shape))
    by_token = config is not None and config.vocabulary_size % num_devices == 0
    layouts = {
        "embedding/token_embedding": (model, None) if by_token else (None, model),
        "attention/query_key_value/kernel": (None, model),
        "attention/query_key_value/bias": (model,),
        "attention/output/kernel": (model, None),
        "feed_forward/intermediate/kernel": (None, model),
        "feed_forward/intermediate/bias": (model,),
        "feed_forward/output/kernel": (model, None),
    }
    layout_map = keras.distribution.LayoutMap(device_mesh)
    for path, layout in layouts.items():
        layout_map[f".*/?{path}"] = layout
    if by_token:
        layout_map[".*/?masked_lm_head/bias"] = (model,)
    return layout_map
