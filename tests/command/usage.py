"""Help, wrong use and the devices: what the command says before any work."""
import contextlib
import fcntl
import os
import pathlib
import platform
import re
import struct
import subprocess
import termios

import harness

COMMANDS = ("devices", "inspect", "train", "eval", "infer", "export", "bench", "tune", "report", "show", "op", "generate", "tokenize")


class Help(harness.CommandTest):
    def test_help_is_as_recorded(self):
        # In expected/; made anew by build-tests/tools/tutti NAME --help > tests/command/expected/NAME.txt; then tools/manual.py
        for command in (None, *COMMANDS):
            with self.subTest(command):
                outcome = self.good(*([command] if command else []), "--help")
                expected = harness.SOURCE / "tests" / "command" / "expected" / f"{command or 'tutti'}.txt"
                self.assertEqual(outcome.output, expected.read_text())
                self.assertEqual(outcome.errors, "")

    def test_version(self):
        self.assertRegex(self.good("--version").output, r"^tutti \d+\.\d+\.\d+\n$")

        self.assertEqual(self.good("version").output, self.good("--version").output)

    def test_help_on_a_command(self):
        for command in COMMANDS:
            self.assertEqual(self.good("help", command).output, self.good(command, "--help").output)
        self.assertEqual(self.good("help").output, self.good("--help").output)

    def test_help_is_as_wide_as_the_terminal(self):
        pty, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        process = subprocess.Popen([harness.TUTTI, "train", "--help"], stdout=terminal)
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while True:
                text += os.read(pty, 65536)
        os.close(pty)
        self.assertEqual(process.wait(), 0)
        lines = text.decode().splitlines()
        self.assertTrue(100 < max(map(len, lines)) <= 120, lines)

    def test_help_needs_no_device(self):
        self.good("train", "--help", OCL_ICD_VENDORS="/nonexistent")


class WrongUse(harness.CommandTest):
    def test_no_command(self):
        self.assertEqual(self.tutti().status, 2)

    def test_unknown_command(self):
        self.refused(2, ["\"fly\"", ", ".join(COMMANDS)], "fly")

    def test_unknown_model(self):
        for command in ("train", "eval", "infer", "export", "bench", "tune", "show"):
            self.refused(2, ["\"alexnet\"", harness.MODELS], command, "alexnet")

    def test_missing_model(self):
        self.refused(2, ["MODEL is missing", harness.MODELS], "train")

    def test_unknown_option(self):
        self.refused(2, ["--epoch;", "did you mean --epochs?"], "train", "lenet", "--epoch", "3")
        self.refused(2, ["--zzz;", "--epochs", "--save"], "train", "lenet", "--zzz", "3")
        self.refused(2, "-x", "train", "lenet", "-x")

    def test_did_you_mean(self):
        for arguments, meant in ((("trian", "lenet"), "train"), (("help", "evaluate"), "eval"), (("train", "resnet"), "resnet18"),
                                 (("show", "ResNet-50"), "resnet50"), (("train", "mlp", "-epochs", "3"), "--epochs"),
                                 (("train", "mlp", "--optimizer", "adamW"), "adamw"), (("op", "sofmax"), "softmax"),
                                 (("infer", "mlp", "--weight=m"), "--weights")):
            self.refused(2, f"; did you mean {meant}?", *arguments)
        outcome = self.refused(2, "\"fly\"", "fly")
        self.assertNotIn("did you mean", outcome.errors)

    def test_bad_values(self):
        self.refused(2, ["--epochs", "\"many\""], "train", "lenet", "--epochs", "many")
        self.refused(2, ["--epochs", "\"0\""], "train", "lenet", "--epochs", "0")
        self.refused(2, ["--batch", "\"-4\""], "train", "lenet", "--batch=-4")
        self.refused(2, ["--lr", "\"nan\""], "train", "lenet", "--lr", "nan")
        self.refused(2, ["--batch", "\"99999999999999999999\""], "bench", "lenet", "--batch", "99999999999999999999")
        rules = (pathlib.Path(__file__).parents[2] / "clkernels/optimizer_rules.h").read_text()
        optimizers = dict.fromkeys(re.findall(r'X\(\w+, [A-Z]+, "(\w+)"', rules))
        self.refused(2, ["--optimizer", ", ".join(optimizers)], "train", "lenet", "--optimizer", "sgdd")
        self.refused(2, ["--mode", "train, infer"], "bench", "lenet", "--mode", "sleep")
        self.refused(2, ["--input", "\"3by4\""], "bench", "lenet", "--input", "3by4")
        self.refused(2, ["--save"], "train", "lenet", "--save")
        self.refused(2, ["--save"], "train", "lenet", "--save", "")

    def test_two_models(self):
        self.refused(2, "\"mlp\"", "train", "lenet", "mlp")

    def test_weights_are_needed(self):
        self.refused(2, "--weights", "eval", "lenet")
        self.refused(2, "--weights", "infer", "lenet")
        self.refused(2, "--weights", "export", "lenet", "--output", "lenet.onnx")
        self.refused(2, "--output", "export", "lenet", "--weights", "lenet.safetensors")

    def test_shares_that_do_not_fit(self):
        self.refused(2, ["--shares", "1,2,3"], "bench", "linear", "--shares", "1,2,3", "--devices", "0")
        self.refused(2, ["--shares", "\"1,x\""], "bench", "linear", "--shares", "1,x", "--devices", "0")

    def test_batch_larger_than_the_data(self):
        self.refused(2, ["--batch", "20000", "10000"], "train", "lenet", "--batch", "20000")

    def test_classes_for_each_pixel(self):
        self.refused(2, ["unet", "[10, 28, 28]", "for each pixel"], "train", "unet")
        (self.folder / "m.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
        self.refused(2, "for each pixel", "eval", "unet", "--weights", "m.safetensors")

    def test_files_are_checked_before_any_work(self):
        """Without a device: nothing is compiled or trained before."""
        (self.folder / "text.safetensors").write_text("no weights at all")
        (self.folder / "m.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
        (self.folder / "folder").mkdir()
        for words, arguments in (
                (["--weights none", "cannot be read"], ("eval", "mlp", "--weights", "none")),
                (["--weights text.safetensors", "not a safetensors file"], ("train", "mlp", "--weights", "text.safetensors")),
                (["--weights folder", "this is a folder"], ("train", "mlp", "--weights", "folder")),
                (["a.pth", "PyTorch", "torch.onnx.export"], ("export", "mlp", "--weights", "a.pth", "--output", "a.onnx")),
                (["a.h5", "Keras", "model.export"], ("eval", "mlp", "--weights", "a.h5")),
                (["net.onnx", "name it as MODEL"], ("eval", "mlp", "--weights", "net.onnx")),
                (["--resume a.safetensors", "cannot be read"], ("train", "mlp", "--resume", "a")),
                (["--resume m.state.safetensors"], ("train", "mlp", "--resume", "m")),
                (["--save none/m", "folder none"], ("train", "mlp", "--save", "none/m")),
                (["--report none/r.html", "folder none"], ("train", "mlp", "--report", "none/r.html")),
                (["--report folder", "it is a folder"], ("train", "mlp", "--report", "folder")),
                (["--log none/l.csv"], ("train", "mlp", "--log", "none/l.csv")),
                (["--tensorboard m.safetensors", "it is a file"], ("train", "mlp", "--tensorboard", "m.safetensors")),
                (["--find-lr none/r.svg"], ("train", "mlp", "--find-lr", "none/r.svg")),
                (["--output none/m.onnx"], ("export", "mlp", "--weights", "m.safetensors", "--output", "none/m.onnx"))):
            with self.subTest(arguments):
                self.refused(1, words, *arguments, OCL_ICD_VENDORS="/nonexistent")
        self.refused(2, ["m.pt", "PyTorch"], "train", "m.pt")
        self.refused(2, ["m.keras", "Keras"], "show", "m.keras")
        self.refused(2, ["these are weights", "--weights m.safetensors"], "eval", "m.safetensors")

    def test_names_of_checkpoints(self):
        """NAME, NAME.safetensors and NAME.state.safetensors are one checkpoint, for --resume and for --weights."""
        data = ("--data", harness.write_mnist(self.folder / "data"))
        self.good("train", "mlp", *data, "--steps", "1", "--save", "m")
        results = {name: self.good("eval", "mlp", *data, "--weights", name, "--json").lines()[0]["loss"]
                   for name in ("m", "m.safetensors", "m.state.safetensors", self.folder / "m")}
        self.assertEqual(len(set(results.values())), 1, results)
        (self.folder / "m").mkdir()
        self.good("train", "mlp", *data, "--steps", "1", "--weights", "m")
        self.good("export", "mlp", "--weights", "m.state.safetensors", "--output", "m.onnx")
        before = self.pair("m")
        for name in ("m", "m.safetensors", "m.state.safetensors"):
            for end, content in zip((".safetensors", ".state.safetensors"), before):
                (self.folder / f"m{end}").write_bytes(content)
            self.good("train", "mlp", *data, "--steps", "1", "--resume", name, "--save", "n")
            results[name] = self.pair("n")
        self.assertEqual(results["m"], results["m.safetensors"])
        self.assertEqual(results["m"], results["m.state.safetensors"])

    def test_first_past_the_end(self):
        data = ("--data", harness.write_mnist(self.folder / "data"))
        self.good("train", "mlp", *data, "--steps", "1", "--save", "m")
        self.refused(2, ["--first", "50"], "infer", "mlp", *data, "--weights", "m.safetensors", "--first", "50")


class Operations(harness.CommandTest):
    def test_list(self):
        listed = self.good("op", OCL_ICD_VENDORS="/nonexistent")
        self.assertRegex(listed.output, r"(?m)^Elementwise:\n  add +a \+ b$")
        self.assertEqual(listed.errors, "")

    def test_one(self):
        told = self.good("op", "topk").output
        self.assertRegex(told, r"(?m)^  k: .*\n      a whole number; required$")
        self.assertRegex(told, r"(?m)^  axis: .*\n      an axis; default: -1$")
        self.assertIn('tutti_op(network, "topk", (tutti_tensor[]) { x }, 1, "k=...")', told)
        self.assertIn("notset, valid, same_upper, same_lower; default: notset", self.good("op", "conv").output)

    def test_json(self):
        lines = {line["operation"]: line for line in self.good("op", "--json").lines()}
        self.assertGreaterEqual(len(lines), 100)
        self.assertEqual([line["operation"] for line in self.good("op", "--json", "concat").lines()], ["concat"])
        self.assertGreater(lines["concat"]["max_inputs"], 2)
        self.assertEqual([a["name"] for a in lines["topk"]["attributes"] if a["required"]], ["k"])

    def test_every_layer_has_a_name(self):
        headers = "".join(path.read_text() for path in (harness.SOURCE / "include").glob("*.h"))
        functions = set(re.findall(r"TUTTI_API tutti_tensor\s+tutti_(\w+)\(", headers))
        # What adds no layer, and what others are for.
        other = {"op", "input", "input_typed", "parameter", "parameter_sized", "find_parameter", "constant", "constant_typed",
                 "reshape_sized", "conv_sized", "conv_transpose_sized", "pool_sized", "conv2d", "pool", "custom"}
        self.assertLessEqual(other, functions)
        named = {line["operation"] for line in self.good("op", "--json").lines()}
        functions = functions - other - {"mean"} | {"mean_loss"}    # Mean is another operation of ONNX
        self.assertEqual(functions - named, set())

    def test_page(self):
        subprocess.run([harness.SOURCE / "tools" / "operations.py", harness.TUTTI, "--check"], check=True)

    def test_unknown(self):
        self.refused(2, ["\"fly\"", "`tutti op`"], "op", "fly")


class Devices(harness.CommandTest):
    FIELDS = {"index": int, "name": str, "platform": str, "class": str, "compute_units": int, "memory_bytes": int, "driver": str}

    def test_json(self):
        lines = self.good("devices", "--json").lines()
        self.assertGreater(len(lines), 0)
        for position, line in enumerate(lines):
            for field, kind in self.FIELDS.items():
                self.assertIsInstance(line[field], kind, field)
            self.assertEqual(line["index"], position)
            self.assertIn(line["class"], ("cpu", "gpu"))
            self.assertGreater(line["memory_bytes"], 0)
        self.assertTrue(any(line["chosen"] for line in lines))

    def test_text(self):
        outcome = self.good("devices")
        self.assertRegex(outcome.output, r"(?m)^\* +0  ")

    def test_check(self):
        outcome = self.good("devices", "--check", "--json")
        self.assertTrue(all(line["check"] == "ok" for line in outcome.lines()), outcome)
        for line in outcome.lines():
            self.assertGreater(line["peak_flops"], 1e8)
            self.assertGreater(line["peak_bytes"], 1e8)
        self.assertRegex(self.good("devices", "--check").output, r"check: ok\n      peak: \d+ GFLOP/s, (bf16 .*)?\d+\.\d GB/s\n")

    def test_bf16(self):
        wide = {"TUTTI_DEVICE_CLASS": "cpu", "TUTTI_VECTOR_WIDTH": "16"}
        line = self.good("devices", "--check", "--json", TUTTI_BF16_DOTS="plain", **wide).lines()[0]
        self.assertEqual(line["bf16_dots"], {precision: {"form": "plain"} for precision in ("fp32", "tf32", "bf16")})
        self.assertGreater(line["peak_bf16_flops"], 1e8)
        output = self.good("devices", "--check", TUTTI_BF16_DOTS="plain", **wide).output
        self.assertIn("\n      bf16 dot products: plain with --precision fp32, tf32, bf16\n      check: ok\n", output)
        self.assertRegex(output, r"peak: .*, bf16 dot products \d+ GFLOP/s, ")
        line = self.good("devices", "--check", "--json", TUTTI_BF16_DOTS="off", **wide).lines()[0]
        self.assertEqual(line["bf16_dots"]["bf16"], {"refusal": "TUTTI_BF16_DOTS is off"})
        self.assertNotIn("peak_bf16_flops", line)
        self.assertIn("products: not with fp32, tf32, bf16: TUTTI_BF16_DOTS is off\n", self.good("devices", TUTTI_BF16_DOTS="off", **wide).output)
        narrow = self.good("devices", "--json", TUTTI_BF16_DOTS="plain", TUTTI_DEVICE_CLASS="cpu", TUTTI_VECTOR_WIDTH="8").lines()[0]
        self.assertIn("fewer than 16 floats", narrow["bf16_dots"]["fp32"]["refusal"])
        gpu = self.good("devices", TUTTI_DEVICE_CLASS="gpu").output
        self.assertNotIn("bf16_dots", gpu)

    def test_bf16_of_this_processor(self):
        """What the system says that the processor has: instructions that are there but not used have another reason."""
        flags = pathlib.Path("/proc/cpuinfo").read_text().split() if platform.machine() == "x86_64" else []
        for line in self.good("devices", "--json", TUTTI_VECTOR_WIDTH="16").lines():
            if line["class"] != "cpu":
                continue
            form, refusal = line["bf16_dots"]["bf16"].get("form"), line["bf16_dots"]["bf16"].get("refusal")
            self.assertEqual(form is None, refusal is not None)
            self.assertIn(form, (None, *(["dots"] if "avx512_bf16" in flags else []), *(["tiles"] if "amx_bf16" in flags else [])))
            if form is None and "avx512_bf16" in flags:
                self.assertNotIn("the processor has no", refusal)

    def test_two_devices_of_a_platform(self):
        lines = self.good("devices", "--json", "--devices", "0,1", POCL_DEVICES="pthread pthread").lines()
        self.assertEqual([line["chosen"] for line in lines], [True, True])

    def test_class_can_be_forced(self):
        line = self.good("devices", "--json", TUTTI_DEVICE_CLASS="gpu").lines()[0]
        self.assertEqual(line["class"], "gpu")

    def test_long_refusal(self):
        """A verdict of the check as a compiler's long message: shortened for people, between letters."""
        cpu = {"TUTTI_DEVICE_CLASS": "cpu", "TUTTI_CACHE_DIR": self.folder / "cache"}
        if "form" not in self.good("devices", "--json", **cpu).lines()[0]["bf16_dots"]["bf16"]:
            self.skipTest("this processor has no such instructions")
        [checks] = (self.folder / "cache").glob("*.checks")
        message = "x" + 100 * "\u00e9"
        text = re.sub(r"(?m)^(bf16/\S+) passed$", rf"\1 failed {message}", checks.read_text())
        for untried in ("bf16/tiles/bf16", "bf16/dots/bf16"):  # the next candidate of a processor that has both
            text += "" if f"\n{untried} " in text else f"{untried} failed {message}\n"
        checks.write_text(text)
        line = self.good("devices", "--json", **cpu).lines()[0]
        self.assertEqual(line["bf16_dots"]["bf16"].get("refusal"), message)
        self.assertIn(f"bf16: x{79 * chr(0xe9)}...\n", self.good("devices", **cpu).output)

    def test_no_platform(self):
        for arguments in (["devices"], ["devices", "--check"], ["devices", "--json"], ["train", "mlp"], ["bench", "mlp"]):
            with self.subTest(arguments):
                outcome = self.refused(1, "OpenCL", *arguments, OCL_ICD_VENDORS=self.folder / "none")
                self.assertEqual(outcome.output, "")

    def test_device_that_does_not_exist(self):
        for command in (["train", "mlp"], ["bench", "mlp"], ["show", "mlp"], ["devices"]):
            with self.subTest(command):
                self.refused(2, "99", *command, "--devices", "99")
        self.refused(2, "no such card", "bench", "mlp", "--devices", "no such card")
        self.refused(2, "99", "bench", "mlp", TUTTI_DEVICES="99")


harness.main()
