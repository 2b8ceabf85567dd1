"""A web page to try BERT models: fill masks, classify, find entities, answer questions, compare, see attention.

    python3 -m pip install -e ".[demo,quickstart]" && python3 examples/demo_app.py

and open the address that it prints. Each tab uses the model that an example of this folder wrote, below the folder in
which you start it (or `--folder`). If there is no such model, the tab shows the command that makes one. Comparing
sentences and looking at attention work right away, with all-MiniLM-L6-v2. You can choose the model of a tab:

    python3 examples/demo_app.py --mask path/to/bert-base-uncased --classifier sentiment.keras

A directory must have a trained head for its task: the answers of an untrained one mean nothing. The page listens on
this machine only, has no password, sends no request to another machine, and stores nothing that is typed.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# By default Gradio reports every start to its makers; it reads this variable when it is imported.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import _demo_models as demo

MEAN = "mean of all"
# Pictures follow `color-scheme`, which Gradio does not set; and Gradio hides radio buttons.
CSS = """
:root { color-scheme: light; }
:root:has(body.dark) { color-scheme: dark; }
.gradio-container .kbl-picture { margin: 0; }
.gradio-container .kbl-picture input[type="radio"] { appearance: auto; }
.gradio-container button[role="tab"][aria-selected="true"] { color: var(--link-text-color); }
"""
INTRODUCTION = """# Ask a BERT
Each tab runs a model on this machine. A score is computed by the model; it does not measure how true the answer is."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the examples ran (default: here)")
    for name, slot in demo.SLOTS.items():
        shown = f"a .keras file or directory, for “{slot.title}” (default: {slot.path})"
        parser.add_argument(f"--{name}", metavar="MODEL", help=shown)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=7860, help="the port to listen on (default: 7860)")
    return parser.parse_args()


def with_errors_shown(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its errors as messages that Gradio shows to the visitor."""
    import gradio as gr

    @functools.wraps(function)
    def wrapped(*values: Any) -> Any:
        try:
            return function(*values)
        except ValueError as error:
            raise gr.Error(str(error), title="Not yet", print_exception=False) from error

    return wrapped


def ask(button: Any, function: Callable[..., Any], inputs: list[Any], output: Any) -> None:
    """Calls the function at each click. One call runs at a time, as all models share the processor's cores."""
    shown = with_errors_shown(function)
    button.click(shown, inputs, output, concurrency_id="models", concurrency_limit=1, api_visibility="private")


def mask_tab(gr: Any, model: Any) -> None:
    text = gr.Textbox("He plays the [MASK] in a band.", label="Text", info="Write [MASK] where a word is missing.")
    ask(gr.Button("Fill", variant="primary"), functools.partial(demo.fill_masks, model), [text], gr.HTML())


def classifier_tab(gr: Any, model: Any) -> None:
    texts = [gr.Textbox("A warm and funny film.", label="Text", lines=2)]
    if model.pairs:
        texts.append(gr.Textbox("It made me laugh.", label="Second text", lines=2))
    button = gr.Button("Classify", variant="primary")
    ask(button, functools.partial(demo.classify, model), texts, gr.Label(label="Answer"))


def entities_tab(gr: Any, model: Any) -> None:
    text = gr.Textbox("Marie Curie was born in Warsaw and worked in Paris.", label="Text", lines=3)
    ask(gr.Button("Find", variant="primary"), functools.partial(demo.find_entities, model), [text], gr.HTML())


def answers_tab(gr: Any, model: Any) -> None:
    question = gr.Textbox("Why did the ferry leave at noon?", label="Question")
    context = gr.Textbox(
        "The ferry left the harbour at noon because the old bridge was closed. It came back in the evening.",
        label="Text",
        info="The answer is a part of this text.",
        lines=5,
    )
    button = gr.Button("Answer", variant="primary")
    ask(button, functools.partial(demo.answer_question, model), [question, context], gr.HTML())


def encoder_tab(gr: Any, model: Any) -> None:
    sentence = gr.Textbox("A cat sleeps.", label="Sentence")
    others = gr.Textbox(
        "A kitten naps.\nThe dog is awake.\nStocks fell today.", label="Other sentences", info="One per line.", lines=4
    )
    button = gr.Button("Compare", variant="primary")
    table = gr.Dataframe(
        headers=["cosine", "sentence"],
        label="The most similar first; 1 means equal",
        interactive=False,
        wrap=True,
    )
    ask(button, functools.partial(demo.compare, model), [sentence, others], table)


def attention_tab(gr: Any, models: dict[str, Any]) -> None:
    """The attention of any of the models, as every task has an encoder."""
    first = next(iter(models))
    text = gr.Textbox("The cat sat on the mat because it was warm.", label="Text")
    with gr.Row():
        name = gr.Dropdown(list(models), value=first, label="Model")
        view = gr.Radio(list(demo.VIEWS), value="Lines", label="View")
    with gr.Row():
        layer, head = layer_and_head(gr, models[first])
    name.change(lambda name: layer_and_head(gr, models[name]), [name], [layer, head], api_visibility="private")

    def explore(text: str, name: str, view: str, layer: str, head: str) -> str:
        return demo.explore(models[name], text, view, int(layer), None if head == MEAN else int(head))

    ask(gr.Button("Look", variant="primary"), explore, [text, name, view, layer, head], gr.HTML())


def layer_and_head(gr: Any, model: Any) -> list[Any]:
    """Two dropdowns: the layers and the heads of a model."""
    config = model.backbone.config
    layers, heads = (list(map(str, range(count))) for count in (config.num_layers, config.num_heads))
    return [
        gr.Dropdown(layers, value=layers[0], label="Layer"),
        gr.Dropdown([MEAN, *heads], value=MEAN, label="Head"),
    ]


TABS = {
    "mask": mask_tab,
    "classifier": classifier_tab,
    "entities": entities_tab,
    "answers": answers_tab,
    "encoder": encoder_tab,
}


def make_page(found: dict[str, demo.Found]) -> Any:
    """The page, with a tab for each slot and one for attention."""
    import gradio as gr

    models = {demo.SLOTS[name].title: one.model for name, one in reversed(found.items()) if one.model is not None}
    with gr.Blocks(title="Ask a BERT", analytics_enabled=False) as page:
        gr.Markdown(INTRODUCTION)
        for name, one in found.items():
            with gr.Tab(demo.SLOTS[name].title):
                if one.model is None:
                    gr.Markdown(one.reason)
                else:
                    TABS[name](gr, one.model)
        with gr.Tab("Look at attention"):
            if models:
                attention_tab(gr, models)
            else:
                gr.Markdown(found["encoder"].reason)
    return page


def make_theme(gr: Any) -> Any:
    """Fonts of the visitor's own machine, and colours with enough contrast."""
    font, code_font = gr.themes.Font("sans-serif"), gr.themes.Font("monospace")
    return gr.themes.Base(font=font, font_mono=code_font).set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
    )


def main() -> None:
    arguments = parse_arguments()
    try:
        import gradio as gr
    except ImportError:
        sys.exit('demo_app: needs Gradio. This installs it: python3 -m pip install -e ".[demo]"')
    found = demo.find_models(arguments.folder, {name: getattr(arguments, name) for name in demo.SLOTS})
    for name, one in found.items():
        print(f"{demo.SLOTS[name].title}: {one.reason or one.source}")
    page = make_page(found)
    _, address, _ = page.launch(
        server_name=arguments.host,
        server_port=arguments.port,
        share=False,
        theme=make_theme(gr),
        css=CSS,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        quiet=True,
        prevent_thread_lock=True,
    )
    print(f"open {address} in a browser; Ctrl+C stops the server", flush=True)
    page.block_thread()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # in a user's file or folder
        sys.exit(f"demo_app: {error}")
