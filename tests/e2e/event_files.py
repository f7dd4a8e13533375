#!/usr/bin/env python3
"""What TensorBoard's own readers find in a folder of event files; fails where one cannot read an event, two of them find
different things, or a tag has a step twice.

event_files.py dump DIR           a line for each thing shown, sorted, without times
event_files.py lines DIR JSONL    the scalars beside the lines of JsonLogHook with the same LOG_INTERVAL
event_files.py losses DIR TRACE INTERVAL BATCHES   train/iter/loss beside the traced loss of each iteration, whose batches
                                  have BATCHES samples: "7,7,3"
"""
import io
import json
import pathlib
import struct
import sys

from PIL import Image
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub import errors
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
from tensorboard.plugins.hparams import metadata

ALL = {kind: 0 for kind in ("scalars", "images", "histograms", "tensors", "compressedHistograms", "audio")}


def events(folder):
    """Of every file, in the order in which TensorBoard reads them. A torn or damaged record is an error."""
    for path in sorted(pathlib.Path(folder).glob("*tfevents*")):
        reader = PyRecordReader_New(str(path))
        first = True
        while True:
            try:
                reader.GetNext()
            except errors.OutOfRangeError:
                break
            event = event_pb2.Event.FromString(reader.curr_event)
            assert event.wall_time > 1.6e9, event
            assert (event.file_version == "brain.Event:2") == first, event
            first = False
            yield event
        assert not first, f"{path} is empty"


def values(folder):
    found = {}
    for event in events(folder):
        for value in event.summary.value:
            place = (value.tag, event.step)
            assert place not in found, f"{place} is there twice"
            found[place] = value
    return found


def check_accumulators(folder, found):
    """The readers that make TensorBoard's tabs see exactly these."""
    legacy = event_accumulator.EventAccumulator(str(folder), size_guidance=ALL)
    legacy.Reload()
    seen = {(tag, e.step) for tag in legacy.Tags()["scalars"] for e in legacy.Scalars(tag)}
    assert seen == {place for place, value in found.items() if value.HasField("simple_value")}
    for tag in legacy.Tags()["scalars"]:
        for e in legacy.Scalars(tag):
            value = found[tag, e.step].simple_value
            assert e.value == value or e.value != e.value and value != value, (tag, e)
    seen = {(tag, e.step) for tag in legacy.Tags()["images"] for e in legacy.Images(tag)}
    assert seen == {place for place, value in found.items() if value.HasField("image")}
    seen = {(tag, e.step) for tag in legacy.Tags()["histograms"] for e in legacy.Histograms(tag)}
    assert seen == {place for place, value in found.items() if value.HasField("histo")}
    modern = plugin_event_accumulator.EventAccumulator(str(folder), size_guidance={"tensors": 0})
    modern.Reload()
    seen = {(tag, e.step) for tag in modern.Tags()["tensors"] for e in modern.Tensors(tag)}
    assert seen == set(found), seen ^ set(found)
    return modern


def text_of(tag, step, value):
    if value.HasField("simple_value"):
        return f"scalar {tag} {step} {value.simple_value!r}"
    if value.HasField("image"):
        picture = Image.open(io.BytesIO(value.image.encoded_image_string))
        picture.load()
        assert picture.format == "PNG"
        assert picture.size == (value.image.width, value.image.height), tag
        assert len(picture.getbands()) == value.image.colorspace, tag
        return f"image {tag} {step} {picture.size[0]}x{picture.size[1]} {picture.mode} {picture.tobytes().hex()}"
    if value.HasField("histo"):
        histogram = value.histo
        assert len(histogram.bucket) == len(histogram.bucket_limit)
        assert sum(histogram.bucket) == histogram.num
        assert list(histogram.bucket_limit) == sorted(histogram.bucket_limit)
        buckets = [(limit, count) for limit, count in zip(histogram.bucket_limit, histogram.bucket) if count]
        return f"histogram {tag} {step} {histogram.num:g} {histogram.sum:g} {histogram.sum_squares:g} {buckets}"
    plugin = value.metadata.plugin_data
    if plugin.plugin_name == "text":
        (text,) = value.tensor.string_val
        if tag == "config":  # it names what differs between a run and one that is stopped
            text = b"yaml" if text.startswith(b"```yaml\n") and text.endswith(b"\n```") and b"SOLVER:" in text else text
        return f"text {tag} {step} {json.dumps(text.decode())}"
    assert plugin.plugin_name == "hparams", value
    if tag == metadata.SESSION_START_INFO_TAG:
        info = metadata.parse_session_start_info_plugin_data(plugin.content)
        assert info.start_time_secs > 1.6e9
        kinds = {"number_value": "number", "bool_value": "bool", "string_value": "string"}
        each = [f"{name}={kinds[v.WhichOneof('kind')]}:{getattr(v, v.WhichOneof('kind'))}"
                for name, v in sorted(info.hparams.items())]
        return f"hparams {step} {' '.join(each)}"
    if tag == metadata.SESSION_END_INFO_TAG:
        return f"hparams end {step} {metadata.parse_session_end_info_plugin_data(plugin.content).status}"
    assert tag == metadata.EXPERIMENT_TAG, tag
    experiment = metadata.parse_experiment_plugin_data(plugin.content)
    assert all(info.type != 0 for info in experiment.hparam_infos)
    return f"hparams experiment {step} {len(experiment.hparam_infos)} " + " ".join(
        f"{info.name.tag}:{info.dataset_type}" for info in experiment.metric_infos)


def float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def compare_lines(found, path):
    """Every value of every line is a scalar of that tag and step, and every scalar but those of probes is in a line."""
    left = {place: value.simple_value for place, value in found.items()
            if value.HasField("simple_value") and "/probe/" not in place[0]}
    iterations = {"eval": 0, "test": 0}  # those of the mode, by the lines of its phases
    compared = 0
    for text in pathlib.Path(path).read_text().splitlines():
        line = json.loads(text, parse_constant=lambda constant: sys.exit(f"{constant} is no JSON"))
        mode, kind = line.pop("mode"), line.pop("line")
        epoch, iter, iteration = line.pop("epoch"), line.pop("iter"), line.pop("iteration")
        line.pop("step")
        before = iterations.get(mode, 0)
        step = epoch if kind == "epoch" else iteration if mode == "train" else before + iter
        if kind == "epoch" and mode != "train":
            iterations[mode] = before + iter
        assert line, text
        for key, number in line.items():
            value = left.pop((f"{mode}/{kind}/{key}", step))
            assert value != value if number is None else value == float32(number), (text, key, value)
            compared += 1
    assert not left, f"no line has {left}"
    print(f"{compared} values are the same")


def compare_losses(found, trace, interval, batches):
    interval, sizes = int(interval), [int(size) for size in batches.split(",")]
    losses = {}
    for line in pathlib.Path(trace).read_text().splitlines():
        iteration, bits = line.split()
        losses[int(iteration)] = struct.unpack("<f", struct.pack("<I", int(bits, 16)))[0]
    steps = [step for tag, step in found if tag == "train/iter/loss"]
    assert steps == list(range(interval, len(losses) + 1, interval)), steps
    for step in steps:
        window = range(step - interval, step)
        weight = sum(sizes[i % len(sizes)] for i in window)
        mean = sum(losses[i] * sizes[i % len(sizes)] for i in window) / weight
        value = found["train/iter/loss", step].simple_value
        assert abs(value - mean) <= 1e-6 * abs(mean), (step, value, mean)
    print(f"{len(steps)} means are the same")


def main():
    what, folder = sys.argv[1:3]
    found = values(folder)
    assert found, f"{folder} has no events"
    check_accumulators(folder, found)
    if what == "lines":
        compare_lines(found, sys.argv[3])
    elif what == "losses":
        compare_losses(found, *sys.argv[3:])
    else:
        print("\n".join(sorted(text_of(tag, step, value) for (tag, step), value in found.items())))


main()
