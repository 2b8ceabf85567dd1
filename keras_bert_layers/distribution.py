"""Several devices and machines: Keras's distributions on JAX, and Orbax checkpoints, for these models."""

from __future__ import annotations

import math
import os
import signal
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import read_json
from keras_bert_layers.checkpoints.files.keras_file import check_model_config, reason_of
from keras_bert_layers.config import BertConfig
from keras_bert_layers.tasks.task import Task

Result = TypeVar("Result")

_INITIALIZE, _LAYOUT_MAP, _BACKUP, _LOAD = "distribution.initialize", "bert_layout_map", "Backup", "load_backup"
# What a launcher sets for each of several processes: Keras, JAX on Open MPI, SLURM and TPU.
_NUM_PROCESSES = ("KERAS_DISTRIBUTION_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
# The steps and epochs of a training, the states of its metrics and the seeds of its dropout.
_MOST_PLACE = 10_000_000
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
    _check_backend(_INITIALIZE, 'Set the environment variable KERAS_BACKEND to "jax" before Python starts.')
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


def _check_backend(owner: str, cure: str) -> None:
    if (backend := keras.backend.backend()) != "jax":
        raise RuntimeError(f"`{owner}` needs Keras on JAX. Received: {backend}. {cure}")


def _launched(variables: Mapping[str, str]) -> int:
    """How many processes a launcher says it has started; 1 where there is none."""
    counts = [int(variables[name]) for name in _NUM_PROCESSES if variables.get(name, "").isdecimal()]
    return max([1, *counts, *(len(variables[name].split(",")) for name in _HOSTS if name in variables)])


def is_first_process() -> bool:
    """Whether this is the only process of a job, or the first one: the one that writes files and reports."""
    if keras.backend.backend() != "jax":
        return True
    import jax

    return bool(jax.process_index() == 0)


def first_process_first(function: Callable[[], Result]) -> Result:
    """Calls a function in the first process, and then in all others, which wait until then.

    It is for functions that write what they do not find: `first_process_first(lambda: write_shards(corpus, "shards"))`
    writes shards once, and all processes read them.

    Args:
        function: takes no arguments. All processes must see the files that it writes. It must not compute on devices,
            or make or load a model: that is for all processes at the same time.

    Returns:
        What the function has returned in this process.
    """
    result = function() if is_first_process() else None
    if keras.backend.backend() == "jax":
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("first_process_first")
    return result if is_first_process() else function()  # type: ignore[return-value]


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


class Backup(keras.callbacks.Callback):
    """Backs up the training of a task while `fit` runs, and resumes it: for any number of processes and devices.

    It does what `keras.callbacks.BackupAndRestore` does, in checkpoints of Orbax: each process writes its part of the
    weights, in the background. If the directory holds a backup when `fit` begins, training resumes at that step, with
    the optimizer, the order of rows, masks and dropout that come next. The number of processes and the layout of the
    weights may be others than before.

    SIGTERM, which clusters send before they stop a machine, makes a backup in all processes and ends them with the exit
    code 143. A backup that was interrupted is ignored, and the one before it is kept until the next is complete. The
    last one, made at the end of training, stays; `load_backup` reads it.

    Args:
        directory: where to write; all processes must see it.
        save_freq: how many steps to take from one backup to the next, or `"epoch"`.

    Raises:
        ModuleNotFoundError: Orbax is not installed.
        RuntimeError: when `fit` begins: Keras does not run on JAX.
        TypeError: when `fit` begins: the model is not a task.
        ValueError: when `fit` begins: the directory holds the backup of another task.

    References:
        Orbax, https://orbax.readthedocs.io
    """

    def __init__(self, directory: str | os.PathLike[str], save_freq: str | int = "epoch"):
        super().__init__()
        self.directory = Path(directory).absolute()
        if save_freq != "epoch":
            checks.positive_integer(_BACKUP, "save_freq", save_freq)
        self.save_freq = save_freq
        self._manager: Any = None
        self._num_since = self._num_steps = 0  # steps since the last backup, and in this `fit`
        self._is_terminated = False
        self._handler_before: Any = None  # of SIGTERM, while this callback takes it

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Called by Keras; resumes."""
        checks.instance(_BACKUP, "model", self.model, Task)
        _check_backend(_BACKUP, "Use `keras.callbacks.BackupAndRestore`.")
        import jax

        if self._manager is not None:  # an error has ended the `fit` before
            self._manager.close()
        self._manager = _manager(self.directory)
        self._num_since = self._num_steps = 0
        self._restored = self._manager.latest_step()
        if self._restored is not None:
            _restore(self._manager, self.model, _BACKUP)
        self._is_terminated = False
        # JAX follows the signal of several processes itself.
        if jax.process_count() == 1 and threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, *_: Any) -> None:
        self._is_terminated = True
        self._take_no_signals()

    def _take_no_signals(self) -> None:
        before, self._handler_before = self._handler_before, None
        if before is not None:
            signal.signal(signal.SIGTERM, before)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._num_since += 1
        self._num_steps += 1
        if self._is_terminated or self._manager.reached_preemption(self._num_steps):
            self.on_train_end()
            raise SystemExit(128 + signal.SIGTERM)
        if isinstance(self.save_freq, int) and self._num_since >= self.save_freq:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Called by Keras."""
        if self.save_freq == "epoch":
            self._save()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._take_no_signals()
        self._save()
        if self._restored == int(self.model.optimizer.iterations):
            warnings.warn(
                f"`{_BACKUP}`: nothing was trained: `directory` holds the backup of a training that is finished, and "
                f"its weights were restored. Received: directory={str(self.directory)!r}. Give another directory to "
                "train anew, or more `epochs` to go on.",
                stacklevel=2,
            )
        self._manager.close()
        self._manager = None

    def _save(self) -> None:
        import orbax.checkpoint as ocp

        self._num_since = 0
        task, step = self.model, int(self.model.optimizer.iterations)
        if step in self._manager.all_steps():
            return
        place: dict[str, Any] = {}
        task.trainer.place.save_own_variables(place)
        items = {
            "state": ocp.args.StandardSave({name: variable.value for name, variable in _state(task).items()}),
            "place": ocp.args.StandardSave(place),
            "task": ocp.args.JsonSave(keras.saving.serialize_keras_object(task)),
        }
        if not self._manager.save(step, args=ocp.args.Composite(**items)):
            newest = self._manager.latest_step()
            warnings.warn(
                f"`{_BACKUP}`: step {step} was not saved, as `directory` holds the backup of step {newest}. Received: "
                f"directory={str(self.directory)!r}. Give another directory.",
                stacklevel=2,
            )


def load_backup(directory: str | os.PathLike[str]) -> Any:
    """The task of the last `Backup` in a directory, with its optimizer; in one process, on any backend of Keras.

    Save or export it like any other: on TensorFlow, `load_backup("backup").export("saved_model")`.

    Args:
        directory: the directory of a `Backup`.

    Raises:
        FileNotFoundError: it holds no complete backup.
        CheckpointError: the backup is damaged or hostile, by the checks of `.keras` files.
        ModuleNotFoundError: Orbax is not installed.
    """
    path = Path(directory).absolute()
    manager = _manager(path) if path.is_dir() else None
    if manager is None or (step := manager.latest_step()) is None:
        raise FileNotFoundError(checks.message(_LOAD, "directory", "hold a complete backup", str(directory)))
    file = path / str(step) / "task" / "metadata"
    config = read_json(file)
    stored = sum(part.stat().st_size for part in (path / str(step) / "state").rglob("*"))
    check_model_config(str(file), config, stored)
    try:
        with manager:
            _check_place(path / str(step) / "place")
            task = checks.instance(_LOAD, "task", keras.saving.deserialize_keras_object(config), Task)
            _restore(manager, task, _LOAD)
    except Exception as error:  # Keras's, Orbax's and our classes' own, of many kinds
        raise CheckpointError(f"{path}: the backup cannot be read: {reason_of(error)}") from error
    return task


def _check_place(folder: Path) -> None:
    """ValueError for a place of a training that takes more memory than any does; compressed, it may be small."""
    import jax
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        arrays = jax.tree.leaves(checkpointer.metadata(folder).item_metadata.tree)
    size = sum(math.prod(array.shape) for array in arrays)
    if size > _MOST_PLACE:
        raise ValueError(f"place must hold at most {_MOST_PLACE:,} numbers. Received: {size:,}")


def _manager(directory: Path) -> Any:
    try:
        import orbax.checkpoint as ocp
    except ModuleNotFoundError as error:
        cure = 'Install it: `python -m pip install "keras-bert-layers[jax]"`.'
        raise ModuleNotFoundError(f"`{_BACKUP}` needs the package orbax-checkpoint. {cure}") from error
    return ocp.CheckpointManager(directory, options=ocp.CheckpointManagerOptions(max_to_keep=1))


def _state(task: Any) -> dict[str, Any]:
    """The weights of a task and its optimizer's variables; dropout and metrics are a part of the training's place."""
    weights = [*task.trainable_variables, *task.non_trainable_variables]
    # Keras counts the paths of dropout over all models of a process, and the optimizer's name too.
    named = [(weight.path, weight) for weight in weights if weight.name != "seed_generator_state"]
    named += [(f"optimizer/{variable.name}", variable) for variable in task.optimizer.variables]
    state = {name.replace("/", "."): variable for name, variable in named}
    if len(state) < len(named):
        raise ValueError(f"`{_BACKUP}`: layers of {type(task).__name__} must have names of their own.")
    return state


def _restore(manager: Any, task: Any, owner: str) -> None:
    """Reads the last checkpoint into a task, as this task's weights are divided."""
    import jax
    import orbax.checkpoint as ocp

    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    variables = _state(task)
    wanted = {
        name: jax.ShapeDtypeStruct(
            tuple(variable.shape), variable.dtype, sharding=getattr(variable.value, "sharding", here)
        )
        for name, variable in variables.items()
    }
    items = {"state": ocp.args.StandardRestore(wanted), "place": ocp.args.StandardRestore()}
    try:
        found = manager.restore(manager.latest_step(), args=ocp.args.Composite(**items))
    except ValueError as error:
        rule = f"hold the backup of a {type(task).__name__} with the same layers and optimizer"
        raise ValueError(checks.message(owner, "directory", rule, str(manager.directory))) from error
    for name, value in found["state"].items():
        variables[name].assign(value)
    task.trainer.place.load_own_variables(found["place"])
