"""The arithmetic of docs/explanation/scale.md: against real models and known formulas, and its tables."""

from pathlib import Path

import pytest
from comparison.arithmetic import Sizes, matrix_product_operations
from scale import BASE, H100, LARGE, Bert, all_reduce_seconds, gradient_bytes, memory_bytes, tables
from scale_measured import all_reduced

from keras_bert_layers import BertBackbone, BertPretrainer
from keras_bert_layers.presets import preset_config

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scale.md"


@pytest.mark.parametrize(("layers", "hidden"), [(2, 128), (4, 256)])
def test_parameters_of_real_models(layers, hidden):
    heads = hidden // 64
    task = BertPretrainer(BertBackbone(preset_config(f"bert_uncased_L-{layers}_H-{hidden}_A-{heads}")))
    assert Bert("small", 30522, hidden, layers, heads).parameters() == task.count_params()


def test_operations_are_three_forward_passes():
    sizes = Sizes(hidden_dim=768, intermediate_dim=3072, num_layers=12)
    blocks = 3 * matrix_product_operations(sizes, [512] * 8)
    masked = 3 * 8 * 77 * 2 * (768**2 + 768 * 30522)
    assert BASE.step_operations(8, 512) == blocks + masked


def test_sums_over_devices():
    assert all_reduce_seconds(1e9, 1, H100) == 0
    assert all_reduce_seconds(1e9, 8, H100) == pytest.approx(2 * 7 / 8 * 1e9 / 450e9)
    across = all_reduce_seconds(1e9, 16, H100) - all_reduce_seconds(1e9, 8, H100)
    assert across == pytest.approx(2 * 1 / 2 * 1e9 / 8 / 50e9)
    assert gradient_bytes(LARGE) - gradient_bytes(LARGE, tied_twice=False) == 4 * 30522 * 1024


def test_memory():
    whole = memory_bytes(BASE, 8, rematerialize=False, sharded=False)
    assert whole - memory_bytes(BASE, 8, rematerialize=False, sharded=True) == pytest.approx(7 * BASE.parameters())
    assert memory_bytes(BASE, 8, rematerialize=True, sharded=False) < whole / 3


def test_bytes_of_a_compiled_program():
    program = (
        "%a = (f32[3,5]{1,0}, bf16[7]) all-reduce(%b, %c)\n%d = f32[] all-reduce-start(%e)\n%f = f32[9] add(%a, %d)"
    )
    assert all_reduced(program) == [("f32[3,5]", 60), ("bf16[7]", 14), ("f32[]", 4)]


def test_the_page_has_the_tables():
    page = PAGE.read_text(encoding="utf-8")
    for table in tables():
        assert table in page
