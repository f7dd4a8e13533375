"""read_trace.py FILE: prints the iterations of a Chrome trace, each of which must have operators of the forward and of
the backward pass within it."""
import json
import sys

with open(sys.argv[1]) as file:
    events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
steps = sorted((e for e in events if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])
for step in steps:
    within = [e["name"] for e in events if step["ts"] <= e["ts"] <= step["ts"] + step["dur"]]
    assert "aten::linear" in within, sorted(set(within))
    assert any("Backward" in name for name in within), sorted(set(within))
    assert any(name.startswith("aten::") and name.endswith("_") for name in within), sorted(set(within))
print(*(step["name"].split("#")[1] for step in steps))
