"""tutti tune: what it measures, what it refuses, what it writes, and that every run chooses by it."""
import os
import re
import shutil
import tempfile

import harness

LENET = ("lenet", "--batch", "2", "--devices", "0")
# lenet's second convolution: the one problem of its forward pass that two kernels take on a CPU-class device
PROBLEM = "conv2d/Nx32x14x14/64x32x5x5/Nx64x14x14/k5x5/s1x1/p2x2/d1x1/g1/n2"


class Tuning(harness.CommandTest):
    compiled = False  # all kernels, by a test before

    @classmethod
    def setUpClass(cls):
        """A cache of its own, as what the layer breaks is remembered as refused. Some processors have a third candidate."""
        os.environ["TUTTI_BF16_DOTS"] = "off"
        os.environ["TUTTI_CACHE_DIR"] = tempfile.mkdtemp(prefix="tutti-")
        cls.addClassCleanup(shutil.rmtree, os.environ["TUTTI_CACHE_DIR"])

    def tune(self, *arguments, **environment):
        return self.good("tune", *LENET, "--output", "table.txt", *arguments, **environment)

    def compile_all(self):
        if not Tuning.compiled:
            self.tune()
        Tuning.compiled = True

    def faulty(self, kernel, fault, *arguments):
        layer = {"OPENCL_LAYERS": os.environ["TUTTI_LAYER"], "TUNE_KERNEL": kernel, "TUNE_FAULT": fault}
        return self.tune("--json", *arguments, **layer)

    def table(self):
        return (self.folder / "table.txt").read_text()

    def why(self, *arguments, **environment):
        return self.good("show", *LENET, "--why", *arguments, **environment).output

    def conv2(self, text):
        """What --why says of the second convolution's forward pass."""
        return re.search(r"(?m)^ *\d+ +conv2 +conv2d +(.*\n(?: {8}.*\n)*)", text)[1]

    def test_candidates(self):
        """Nothing but the candidates' verdicts on standard output, and kernels that are sound are not refused."""
        lines = self.tune("--json").lines()
        Tuning.compiled = True
        mine = [line for line in lines if line["problem"] == PROBLEM]
        self.assertEqual([(line["kernel"], line["layer"], line["uses"]) for line in mine], [("direct", "conv2", 1)])
        for line in lines:
            self.assertGreater(line["ms"], 0)
            self.assertGreater(line["noise"], 0)
            self.assertNotIn("refused", line["verdict"])
        self.assertNotIn("!", self.table())

    def refusal(self, fault, reason, *arguments):
        lines = self.faulty("conv2d_direct", fault, *arguments).lines()
        mine = [line for line in lines if line["problem"] == PROBLEM]
        self.assertEqual(len(mine), 1)
        self.assertIn("refused", mine[0]["verdict"])
        self.assertRegex(mine[0]["verdict"], reason)
        self.assertGreater(len(lines), 1, "the candidates after it were tried")
        self.assertRegex(self.table(), "(?m)^" + re.escape(PROBLEM) + " !direct .*" + reason)
        self.assertRegex(self.conv2(self.why("--tuning", "table.txt")), "^winograd\n(.*\n)*        not direct: .*" + reason)

    def test_wrong_kernel(self):
        self.refusal("wrong", "differs from the plain kernel's by nan")

    def test_crashing_kernel(self):
        """Once all kernels are compiled, or the helper that compiles them crashes."""
        self.compile_all()
        self.refusal("crash", "died: Aborted")

    def test_hanging_kernel(self):
        """Once all kernels are compiled, so that a short limit will do."""
        self.compile_all()
        self.refusal("hang", "no result within 6 s", "--time-limit", "6")

    def test_faster_kernel(self):
        """The shipped choice is slowed down: another is found, kept, and chosen by whoever reads the table."""
        outcome = self.faulty("winograd", "slow")
        self.assertRegex(outcome.errors, r"step: .*: kept")
        self.assertRegex(self.table(), "(?m)^" + re.escape(PROBLEM) + r" direct \d+\.\d+ winograd \d+\.\d+$")
        self.assertRegex(self.conv2(self.why()), "^winograd\n        by the rule")
        for chosen in (self.why("--tuning", "table.txt"), self.why(TUTTI_TUNING="table.txt")):
            self.assertRegex(self.conv2(chosen), r"^direct\n        by the user's table, in ms: direct .*\n(.*\n)*"
                                                 r"        not winograd: it was measured at \d+\.\d+ ms")
        self.assertRegex(self.conv2(self.why("--tuning", "off", TUTTI_TUNING="table.txt")), "^winograd\n")
        near, far = (re.sub("n2 ", f"n{n} ", self.table()) for n in (4, 5))
        for text, kernel in ((near, "direct"), (far, "winograd")):  # twice as many samples, and more
            (self.folder / "other.txt").write_text(text)
            self.assertRegex(self.conv2(self.why("--tuning", "other.txt")), f"^{kernel}\n")
        self.tune()  # and what is found later takes its place
        self.assertEqual(self.table().count(PROBLEM + " "), 0)

    def test_other_lines_stay(self):
        text = "# mine\n[class gpu]\nconv2d/* plain\n\n[device of nobody]\n" + PROBLEM + " direct 1\n"
        (self.folder / "table.txt").write_text(text)
        self.tune()
        self.assertTrue(self.table().startswith(text), self.table())

    def test_levels(self):
        """Within a table, what is said of a device goes before its architecture, and that before its class."""
        name = self.good("devices", "--json").lines()[0]["name"]
        sections = {f"[device {name}]": "direct", "[architecture cpu-16]": "plain", "[class cpu]": "winograd"}
        for i, kernel in enumerate(sections.values()):
            text = "".join(f"{head}\nconv2d/*/k5x5/* {said}\n" for head, said in list(sections.items())[i:])
            (self.folder / "levels.txt").write_text(text)
            chosen = self.conv2(self.why("--tuning", "levels.txt", TUTTI_VECTOR_WIDTH="16"))
            self.assertRegex(chosen, f"^{kernel}\n        by the user's table")

    def test_wrong_use(self):
        self.refused(1, "\"none.txt\"".replace('"', "'"), "show", "lenet", "--tuning", "none.txt")
        self.refused(2, "99", "tune", "lenet", "--devices", "99", "--output", "t")
        self.refused(2, "--output", "tune", "mlp", HOME="", XDG_CONFIG_HOME="")
        self.refused(1, "OpenCL", "tune", "mlp", "--output", "t", OCL_ICD_VENDORS=self.folder / "none")


harness.main()
