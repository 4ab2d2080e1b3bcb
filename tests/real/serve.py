"""llama.cpp's server with one model, on a free port of loopback, in a process of its own.

Prints its address as soon as the model is loaded, and ends when its standard input does: with
whoever started it, however that ended.
"""

import argparse
import os
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]

CONTEXT = 2_048  # tokens: of a request and its reply
THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.serve", description=__doc__)
    parser.add_argument("gguf", type=Path, help="the model's file")
    parser.add_argument("--template", type=Path, help="a chat template in place of the model's own")
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(options.gguf)
    params.model_alias = {options.gguf.stem}
    params.n_ctx, params.n_parallel = CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.use_jinja = True
    if options.template:
        params.chat_template = options.template.read_text()
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # taking the server down may wait for ever


if __name__ == "__main__":
    main()
