"""Makes the model archives of this directory with PyTorch itself; README.md says what is in them.

    python make_archives.py [--check] [NAME...]

For each model (all of them, or those named) it writes NAME/model.pt (TorchScript), NAME/model.pt2
(torch.export), the inputs of five steps of four microbatches, and the results of PyTorch's eager
mode: NAME/expected.json and NAME/final.safetensors. Then it trains both files and compares.
--check writes nothing and compares the files that are there with eager mode.
"""

import argparse
import io
import json
import os
import shutil
import struct
import sys
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import torch

import corners
import language
import vision

HERE = Path(__file__).parent
MODELS = {**language.MODELS, **vision.MODELS, **corners.MODELS}
STEPS, MICROBATCHES = 5, 4
DOCUMENTED = {"resnet", "bert"}  # their inputs are .npy files, as the documents show them
TOLERANCE = 1e-5  # of a loss relative to it; of a tensor relative to its largest element, or FLOOR
FLOOR = 0.01  # below this a tensor may be rounding alone: a bias that a norm takes away again


def build(name):
    """The model in training mode, with the same initial weights each time."""
    torch.manual_seed(1)
    return MODELS[name]().train()


def batches(name, model):
    """The arguments of each microbatch: [step][microbatch] -> tuple of tensors."""
    generator = torch.Generator().manual_seed(2)
    return [[model.batch(generator) for _ in range(MICROBATCHES)] for _ in range(STEPS)]


def train(model, lr, data, given=lambda arguments: (arguments, {})):
    """Plain SGD on the mean of the microbatches' losses. Returns the losses, [step][microbatch].

    Tied parameters come once from eager mode; a file that has them under several names gives
    several tensors on one storage, and adding each one's gradient to it is the same update.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    losses = []
    for step in data:
        losses.append([])
        for arguments in step:
            torch.manual_seed(3)
            positional, named = given([a.clone() for a in arguments])
            loss = model(*positional, **named)
            (loss / MICROBATCHES).backward()
            losses[-1].append(loss.item())
        with torch.no_grad():
            for p in parameters:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-lr)
                    p.grad = None
    return losses


def tensors(model):
    """Every parameter and buffer under its first name, the buffers not saved in state_dict too."""
    named = dict(model.named_parameters())
    named.update(model.named_buffers())
    return {name: t.detach() for name, t in named.items()}


def tied(model):
    """Lists of the names that are one parameter."""
    names = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return [group for group in names.values() if len(group) > 1]


# ---- Files --------------------------------------------------------------------------------------

SAFETENSORS = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16",
               torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
               torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64"}


def write_safetensors(path, named):
    header, data = {}, b""
    for name, t in named.items():
        raw = t.contiguous().numpy().tobytes()
        header[name] = {"dtype": SAFETENSORS[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    size, = struct.unpack_from("<Q", raw)
    kinds = {name: kind for kind, name in SAFETENSORS.items()}
    found = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        found[name] = torch.frombuffer(bytearray(raw[begin:end]), dtype=kinds[entry["dtype"]])
        found[name] = found[name].reshape(entry["shape"])
    return found


def input_name(k, j, i):
    return f"step{k}_mb{j}_arg{i}"


def write_batches(folder, data):
    named = {input_name(k, j, i): a for k, step in enumerate(data)
             for j, arguments in enumerate(step) for i, a in enumerate(arguments)}
    if folder.name in DOCUMENTED:
        for name, a in named.items():
            numpy.save(folder / f"{name}.npy", a.numpy())
    else:
        write_safetensors(folder / "inputs.safetensors", named)


def read_batches(folder):
    """Returns what `batches` made."""
    if folder.name in DOCUMENTED:
        named = {p.stem: torch.from_numpy(numpy.load(p)) for p in folder.glob("step*.npy")}
    else:
        named = read_safetensors(folder / "inputs.safetensors")

    def arguments(k, j):
        return tuple(named[input_name(k, j, i)] for i in range(99) if input_name(k, j, i) in named)

    return [[arguments(k, j) for j in range(MICROBATCHES)] for k in range(STEPS)]


def write_torchscript(path, name, arguments):
    """Traced in training mode (a trace runs the model: buffers are put back), or scripted.

    Without the records that map the code to lines of Python, half of a small file.
    """
    model = build(name)
    if model.script:
        made = torch.jit.script(model)
    else:
        made = torch.jit.trace(model, arguments, check_trace=False)
        first = tensors(build(name))
        with torch.no_grad():
            for key, t in tensors(made).items():
                if key in first:
                    t.copy_(first[key])
    whole = io.BytesIO()
    torch.jit.save(made, whole)
    whole.seek(0)
    reader, writer = torch._C.PyTorchFileReader(whole), torch._C.PyTorchFileWriter(str(path))
    version = "version" if reader.has_record("version") else ".data/version"
    writer.set_min_version(int(reader.get_record(version)))
    for record in reader.get_all_records():
        if not record.endswith(".debug_pkl") and not record.startswith((".data/", "version")):
            data = reader.get_record(record)
            writer.write_record(record, data, len(data))
    writer.write_end_of_file()


def write_export(path, name, arguments):
    """Without two notes on each node, above all its stack trace: most of the file."""
    model = build(name)
    positional, named = model.export_arguments(arguments)
    program = torch.export.export(model, positional, named)
    for module in program.graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else ():
            node.meta.pop("stack_trace", None)
            node.meta.pop("torch_fn", None)
    torch.export.save(program, path)


# ---- Comparing ----------------------------------------------------------------------------------

def difference(expected, found):
    """Largest difference of two trainings, (losses, tensors) each, relative as TOLERANCE says."""
    worst = 0.0
    for a, b in zip(sum(expected[0], []), sum(found[0], [])):
        worst = max(worst, abs(a - b) / abs(a))
    for key, a in expected[1].items():
        if key in found[1]:
            apart = (a.double() - found[1][key].double()).abs().max().item()
            worst = max(worst, apart / max(a.double().abs().max().item(), FLOOR))
    return worst


def compare(folder, expected, model, data):
    """Trains both files. Returns {"pt": difference, "pt2": difference}; 0 is bit-equal."""
    found = {}
    if (folder / "model.pt").exists():
        module = torch.jit.load(folder / "model.pt").train()
        # Optimized, TorchScript has derivatives of its own, which differ in the last bits.
        with torch.jit.optimized_execution(False):
            losses = train(module, model.lr, data)
        found["pt"] = difference(expected, (losses, tensors(module)))
    if model.unexportable:
        return found
    try:
        module = torch.export.load(folder / "model.pt2").module()
    except torch._export.verifier.SpecViolationError as error:
        found["pt2"] = f"not loaded by PyTorch: {error}"
    else:
        losses = train(module, model.lr, data, model.export_arguments)
        found["pt2"] = difference(expected, (losses, tensors(module)))
    return found


def sensitivity(name, expected, data):
    """How far rounding moves the result: a training whose weights start 1e-7 relative away."""
    model = build(name)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad and p.is_floating_point():
                p.mul_(1 + 1e-7 * torch.randn(p.shape, dtype=p.dtype))
    return difference(expected, (train(model, model.lr, data), tensors(model)))


def make(name, folder, write):
    eager = build(name)
    data = batches(name, eager) if write else read_batches(folder)
    before = {key: t.clone() for key, t in tensors(eager).items()}
    lr = eager.lr
    ties = tied(eager)
    losses = train(eager, lr, data)
    expected = (losses, tensors(eager))
    parameters = [key for key, _ in eager.named_parameters()]
    changed = [key for key, _ in eager.named_buffers()
               if not torch.equal(before[key], expected[1][key])]

    if write:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_batches(folder, data)
        if not eager.untraceable:
            write_torchscript(folder / "model.pt", name, data[0][0])
        if not eager.unexportable:
            write_export(folder / "model.pt2", name, data[0][0])
        write_safetensors(folder / "final.safetensors",
                          {key: expected[1][key] for key in parameters + changed})

    agreement = compare(folder, expected, build(name), data)
    if not write:
        stored = json.loads((folder / "expected.json").read_text())["microbatch_losses"]
        stored = (stored, read_safetensors(folder / "final.safetensors"))
        agreement["stored"] = difference(expected, stored)
    rounding = sensitivity(name, expected, data)
    if write:
        (folder / "expected.json").write_text(json.dumps({
            "about": (type(eager).__doc__ or "").strip().split("\n")[0],
            "torch": torch.__version__,
            "torchscript": "script" if eager.script else "trace",
            **({"missing": {"pt": eager.untraceable}} if eager.untraceable else {}),
            **({"missing": {"pt2": eager.unexportable}} if eager.unexportable else {}),
            **({"refused": eager.refused} if eager.refused else {}),
            "optimizer": "sgd", "lr": lr, "steps": STEPS, "microbatches": MICROBATCHES,
            "arguments": [[str(a.dtype).removeprefix("torch."), list(a.shape)] for a in data[0][0]],
            "losses": [sum(step) / MICROBATCHES for step in losses],
            "microbatch_losses": losses,
            "parameters": len(parameters),
            "parameter_elements": sum(p.numel() for p in eager.parameters()),
            "tied": ties, "changed_buffers": changed,
            "difference": agreement, "rounding": rounding,
        }, indent=1) + "\n")
    return losses, agreement, rounding


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--check", action="store_true")
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")

    failed = False
    for name in options.names or MODELS:
        folder = HERE / name
        try:
            losses, agreement, rounding = make(name, folder, not options.check)
        except Exception:
            print(f"{name:16} FAILED", flush=True)
            traceback.print_exc(limit=-2)
            failed = True
            continue
        size = sum(f.stat().st_size for f in folder.iterdir())
        numbers = [d for d in agreement.values() if not isinstance(d, str)]
        fine = all(d <= TOLERANCE for d in numbers) and rounding <= TOLERANCE / 2
        failed |= not fine
        text = {s: d if isinstance(d, str) else f"{d:.1e}" if d else "bit-equal"
                for s, d in agreement.items()}
        print(f"{name:16} {size / 1024:5.0f} KiB  loss {sum(losses[0]) / 4:8.5f} -> "
              f"{sum(losses[-1]) / 4:8.5f}  {text}  rounding {rounding:.1e}"
              f"{'' if fine else '  TOO FAR'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
