"""The parts without libraries: quantiles, which repetitions count, the order of turns, agreement, masks' pairs, tables."""
from __future__ import annotations

import json
import math
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from versus import alone, checkpoint, spread, table, timing, workloads  # noqa: E402

try:
    import numpy as np

    from versus.agreement import relative_difference
except ImportError:  # the rest needs nothing but Python
    np = None


class Spread(unittest.TestCase):
    def test_quantiles_lie_between_neighbours(self) -> None:
        self.assertEqual(spread.quantile([3.0, 1.0, 2.0], 0.5), 2.0)
        self.assertEqual(spread.quantile([1.0, 2.0], 0.25), 1.25)
        self.assertEqual(spread.quantile([5.0], 0.9), 5.0)
        self.assertEqual(spread.quantile([1.0, 2.0, 4.0], 1.0), 4.0)
        self.assertRaises(ValueError, spread.quantile, [], 0.5)

    def test_geometric_mean(self) -> None:
        self.assertAlmostEqual(spread.geometric_mean([0.5, 2.0]), 1.0)
        self.assertRaises(ValueError, spread.geometric_mean, [])


class Timing(unittest.TestCase):
    def test_one_thread_that_waited_is_disturbed(self) -> None:
        self.assertFalse(timing.disturbed(timing.Repetition(1.0, 0.995), 1))
        self.assertTrue(timing.disturbed(timing.Repetition(1.0, 0.9), 1))

    def test_a_second_thread_beside_one_is_disturbed(self) -> None:
        self.assertTrue(timing.disturbed(timing.Repetition(1.0, 1.5), 1))

    def test_two_threads_may_sleep_but_not_wait_for_a_cpu(self) -> None:
        self.assertFalse(timing.disturbed(timing.Repetition(0.01, 0.005), 2))
        self.assertTrue(timing.disturbed(timing.Repetition(0.01, 0.02, waited=0.001), 2))

    def test_what_threads_waited_grows(self) -> None:
        before = timing.waited_seconds()
        self.assertGreaterEqual(timing.waited_seconds(), before)
        self.assertGreaterEqual(timing.once(lambda: None, 2).waited, 0.0)

    def test_too_few_undisturbed_repetitions_change_what_counts_for_everybody(self) -> None:
        quiet, busy = timing.Repetition(1.0, 1.0), timing.Repetition(9.0, 1.5)
        calm, poor = timing.Samples([quiet] * 3, [busy]), timing.Samples([quiet], [busy] * 5)
        self.assertEqual(timing.seconds([calm, calm], 1), ("undisturbed", [[1.0] * 3] * 2))
        self.assertEqual(timing.seconds([calm, poor], 1), ("cpu time", [[1.0, 1.0, 1.0, 1.5], [1.0] + [1.5] * 5]))
        self.assertEqual(timing.seconds([calm, poor], 2), ("disturbed", [[1.0], [1.0, 9.0]]))

    def test_order_rotates_and_turns_around(self) -> None:
        orders = [timing.rotated(3, r) for r in range(6)]
        self.assertTrue(all(sorted(o) == [0, 1, 2] for o in orders))
        self.assertEqual({o[0] for o in orders}, {0, 1, 2})
        behind = {(a, b) for o in orders for a, b in zip(o, o[1:])}
        self.assertEqual(len(behind), 6)  # everybody ran behind everybody

    def test_measure_asks_everybody_and_the_yardstick(self) -> None:
        count = [0, 0]

        def run(i: int) -> None:
            count[i] += 1
            sum(range(2000))

        effort = timing.Effort(wanted=0, rounds=3, seconds=5.0, turn_seconds=0.0)
        samples, peaks = timing.measure([lambda: run(0), lambda: run(1)], 1, effort, lambda: 7.0, lambda text: None)
        self.assertEqual(peaks, [7.0] * 6)
        self.assertEqual([len(s.undisturbed) + len(s.disturbed) for s in samples], [3, 3])
        self.assertEqual(count[0], count[1])


class Workloads(unittest.TestCase):
    def test_kept_pairs_are_those_of_the_mask(self) -> None:
        for mask, keep in (("causal", lambda q, k: k <= q), ("window:2,0", lambda q, k: q - 2 <= k <= q), ("dense", lambda q, k: True)):
            for n in (1, 2, 3, 9):
                counted = sum(keep(q, k) for q in range(n) for k in range(n))
                self.assertEqual(workloads.kept_pairs(mask, n, n), counted, (mask, n))
        self.assertEqual(workloads.kept_pairs("causal", 1, 5), 5)  # the last query stands at the last key

    def test_names_are_unique_and_quick_rows_are_of_every_kind(self) -> None:
        rows = workloads.all_rows()
        self.assertEqual(len({w.name for w in rows}), len(rows))
        self.assertEqual({w.kind for w in rows if w.quick}, {w.kind for w in rows})

    def test_a_model_costs_its_layers(self) -> None:
        model, layer = workloads.minilm(8), workloads.encoder(384, 12, 1536, 8, 128)
        self.assertEqual(model.useful_flops(), 6 * layer.useful_flops())

    @unittest.skipIf(np is None, "needs numpy")
    def test_checkpoint_is_read_by_name(self) -> None:
        data = np.arange(6, dtype=np.float32)
        header = json.dumps({
            "__metadata__": {"format": "pt"}, "ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
            "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
        }).encode()  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8) + data.tobytes())
            tensors = checkpoint.read(file)
        self.assertEqual(list(tensors), ["w"])
        self.assertTrue((tensors["w"] == data.reshape(2, 3)).all())
        self.assertEqual(list(checkpoint.layer({"1.attn.q.bias": 5, "10.attn.q.bias": 6, "norm.bias": 7}, 1)), ["attn.q.bias"])

    @unittest.skipIf(np is None, "needs numpy")
    def test_big_bird(self) -> None:
        seen = workloads.big_bird_blocks(16)
        self.assertTrue(seen[0].all() and seen[-1].all() and seen[:, 0].all() and seen[:, -1].all())
        inner = seen[3:-3]
        self.assertTrue((inner.sum(1) == 3 + 2 + workloads.RANDOM_BLOCKS).all())


@unittest.skipIf(np is None, "needs numpy")
class Agreement(unittest.TestCase):
    def test_relative_to_the_largest_value(self) -> None:
        a = np.array([0.0, 10.0], np.float32)
        self.assertAlmostEqual(relative_difference(a, np.array([0.1, 10.0], np.float32)), 0.01)

    def test_wrong_shapes_and_nan_never_agree(self) -> None:
        a = np.zeros((2, 3), np.float32)
        self.assertEqual(relative_difference(a, a.T), math.inf)
        self.assertEqual(relative_difference(a, a * np.float32("nan")), math.inf)
        self.assertEqual(relative_difference(a, a + 1), 1.0)


def result(name: str, group: str, ms: float, agrees: bool = True) -> table.Row:
    return {
        "name": name, "group": group, "median_ms": ms, "p10_ms": ms, "p90_ms": ms, "least_ms": ms, "undisturbed": 9, "repetitions": 10,
        "cpu_share": 1.0, "gflops": 100.0, "fraction_of_peak": 0.5, "ratio": ms / 2.0, "difference": 1e-7 if agrees else 1.0,
        "agrees": agrees,
    }  # fmt: skip


class Tables(unittest.TestCase):
    def report(self) -> table.Row:
        results = [
            result("treadle", "ours", 2.0), result("torch", "torch", 5.0), result("wrong", "openvino", 1.0, agrees=False),
            result("ONNX Runtime", "onnxruntime", 3.0), result("token loop", "loop", 2.5),
        ]  # fmt: skip
        row = {
            "name": "dense", "kind": "attention", "goals": {"best": 1.6, "torch": 2.3, "flex": 2.0, "peak": 0.4}, "counted": "undisturbed", "peak_gflops": 200.0,
            "results": results, "failed": {"flex": "Error: a | b"},
        }  # fmt: skip
        machine = {
            "cpu": "A", "family_model_stepping": "1/2/3", "caches": "L1d 1K", "virtual_machine": False, "cores": 2, "system": "S",
            "load_before": 0.1, "commit": "c", "date": "2026-01-01T00:00", "vendor": "GenuineIntel",
        }  # fmt: skip
        return {
            "machine": machine, "threads": 1, "quick": False, "versions": {"treadle": "x"}, "missing": {"openblas": "not there"},
            "rows": [row],
        }  # fmt: skip

    def test_best_is_the_fastest_peer_that_agrees_and_no_baseline(self) -> None:
        row = self.report()["rows"][0]
        self.assertEqual(table.fastest(row, "best")["name"], "ONNX Runtime")
        self.assertIsNone(table.fastest(row, "openvino"))

    def test_goals(self) -> None:
        row = self.report()["rows"][0]
        self.assertEqual(table.goal(row, "best", 1.6), "best ≥ 1.60: **missed, 1.50**")
        self.assertEqual(table.goal(row, "torch", 2.3), "torch ≥ 2.30: met")
        self.assertEqual(table.goal(row, "flex", 2.0), "flex ≥ 2.00: not measured")
        self.assertEqual(table.goal(row, "peak", 0.4), "peak ≥ 40%: met")

    def test_ratios_of_disturbed_threads_are_not_shown(self) -> None:
        row = self.report()["rows"][0]
        self.assertEqual(table.ratio(row, "best"), "1.50")
        self.assertEqual(table.ratio(row, "flex"), "–")
        self.assertEqual(table.ratio({**row, "counted": "disturbed"}, "best"), "busy")

    def test_unlocked_mkl_stands_in_brackets(self) -> None:
        report = self.report()
        report["rows"][0]["results"].append(result("torch, forced", "torch_unlocked", 2.4))
        self.assertIn("| 2.50 (1.20) |", table.overview(report))
        self.assertEqual(table.fastest(report["rows"][0], "best")["name"], "torch, forced")

    def test_markdown_names_what_is_missing_failed_or_wrong(self) -> None:
        text = table.markdown(self.report())
        self.assertIn("Missing: openblas (not there).", text)
        self.assertIn("| dense | flex | failed: Error: a / b |", text)
        self.assertIn("**disagrees**", text)
        for block in text.split("\n\n"):
            cells = {line.count("|") for line in block.splitlines() if line.startswith("|")}
            self.assertLessEqual(len(cells), 1, block)

    def test_csv_has_a_line_for_each_candidate(self) -> None:
        lines = table.as_csv(self.report()).splitlines()
        self.assertEqual(len(lines), 1 + 5)
        self.assertTrue(lines[0].startswith("row,name,group,median_ms"))


class Alone(unittest.TestCase):
    OUTPUT = """{"benchmarks": [
        {"name": "avx2/softcap/D64/iterations:31", "iterations": 31, "cpu_time": 1.5, "inlined": 0.9, "in_tiles": 0.7},
        {"name": "avx512/softcap/D64/iterations:31", "iterations": 31, "cpu_time": 1.0, "inlined": 0.8, "in_tiles": 0.9},
        {"name": "two_threads/dense/real_time", "iterations": 3, "real_time": 2.0, "ratio": 1.9}]}"""

    def test_counters_by_row_of_the_best_isa(self) -> None:
        rows = alone.counters_of(self.OUTPUT, "avx512")
        self.assertEqual(rows, {"avx512/softcap/D64": {"inlined": 0.8, "in_tiles": 0.9}, "two_threads/dense": {"ratio": 1.9}})

    def test_goals(self) -> None:
        report = {"alone": {f"bench_scores/{n}": c for n, c in alone.counters_of(self.OUTPUT, "avx512").items()}}
        self.assertIn("inlined ≥ 0.87: **missed**; in_tiles ≥ 0.8: met", alone.table(report))
        self.assertEqual(alone.goals("bench_scores/avx512/relu/D64"), [])
        self.assertTrue(alone.met({"max_error": 1e-6}, "max_error", "most", 2e-6))
        self.assertEqual(alone.table({}), "")
        self.assertNotIn("bench_threads", alone.table(report))

    def test_a_program_that_is_not_there_is_named(self) -> None:
        found, missing = alone.measured(Path("/nowhere"), "avx2", lambda _: None)
        self.assertEqual((found, set(missing)), ({}, set(alone.PROGRAMS)))


unittest.main()
