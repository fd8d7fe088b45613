"""Several processes train one network: the same parameters as one process up to rounding, whatever happens to them."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "command"))
import harness  # noqa: E402

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
# Sums in another order: relative to a tensor's largest number, after a dozen steps.
TOLERANCE = 2e-5


class Hosts(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data")
        self.ranks = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "POCL_MAX_PTHREAD_COUNT": "1"}

    def words(self, *arguments, model="mlp"):
        return ["train", model, "--data", self.data, "--batch", "64", "--lr", "0.02", *arguments]

    def start(self, *words, **environment):
        return subprocess.Popen(words, cwd=self.folder, text=True, env=self.environment({**self.ranks, **environment}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start_script(self, starter, script, *arguments, **environment):
        """Each rank runs a line of shell. Its output goes to a file: the mpirun of Open MPI 5.0 loses some under load."""
        for file in self.folder.glob("output-of-rank-*"):
            file.unlink()
        script = f"exec >output-of-rank-$OMPI_COMM_WORLD_RANK; {script}"
        return self.start(*starter, "sh", "-c", script, "sh", *map(str, arguments), **environment)

    def start_ranks(self, *arguments, starter=(*MPIRUN, "-np", "2"), **environment):
        return self.start_script(starter, 'exec "$@"', harness.TUTTI, *arguments, **environment)

    def start_each(self, *commands):
        """Each rank runs a command of its own: by its number, since the mpirun of Open MPI 5.0 crashes at `:`."""
        cases = (f"{rank}) exec {shlex.join(map(str, command))};;" for rank, command in enumerate(commands))
        return self.start_script((*MPIRUN, "-np", str(len(commands))), f"case $OMPI_COMM_WORLD_RANK in {' '.join(cases)} esac")

    def on_ranks(self, *arguments, **keywords):
        return self.ended(self.start_ranks(*arguments, **keywords))

    def on_each(self, *commands, status=0):
        return self.ended(self.start_each(*commands), status)

    def ended(self, program, status=0):
        output, errors = program.communicate(timeout=600)
        output += "".join(file.read_text() for file in sorted(self.folder.glob("output-of-rank-*")))
        outcome = harness.Outcome(program.returncode, output, errors)
        self.assertEqual(outcome.status, status, outcome)
        return outcome

    def same(self, one, other, tolerance=TOLERANCE):
        super().same(one, other, tolerance)

    def test_two_ranks_are_one_process(self):
        """200 samples in batches of 64, the last one smaller; test data divided too."""
        one = self.good(*self.words("--epochs", "3", "--save", "one", "--json")).lines()
        two = self.on_ranks(*self.words("--epochs", "3", "--save", "two", "--json", "--shares", "equal")).lines()
        self.same("one", "two")
        self.assertEqual(len(one), len(two))
        for a, b in zip(one, two):
            self.assertEqual(a["samples"], b["samples"])
            self.assertAlmostEqual(a["loss"], b["loss"], 4)
            self.assertAlmostEqual(a["test_loss"], b["test_loss"], 4)
        self.assertEqual(two[-1]["devices"][0]["samples"], 300)

    def test_same_ranks_same_bytes(self):
        for name in ("a", "b"):
            self.on_ranks(*self.words("--epochs", "2", "--save", name, "--shares", "equal"))
        self.assertEqual(self.pair("a"), self.pair("b"))

    def test_sequence_models(self):
        """Two ranks train gpt and lstm as one process does, to the same bytes each time, and another number of ranks continues."""
        for words in harness.sequence_models(self.folder).values():
            self.good(*words, "--epochs", "3", "--save", "one")
            for name in ("a", "b"):
                self.on_ranks(*words, "--epochs", "3", "--save", name, "--shares", "equal")
            self.same("one", "a", 10 * TOLERANCE)
            self.assertEqual(self.pair("a"), self.pair("b"))
            self.on_ranks(*words, "--epochs", "1", "--save", "two", "--shares", "equal")
            self.good(*words, "--epochs", "3", "--resume", "two")
            self.same("one", "two", 10 * TOLERANCE)

    def test_half_precision_gradients(self):
        """8 bits of each gradient: close, and the same bytes in every run."""
        words = self.words("--epochs", "2", "--shares", "equal")
        self.good(*words, "--save", "one")
        for name in ("a", "b"):
            self.on_ranks(*words, "--wire", "bf16", "--save", name)
        self.assertEqual(self.pair("a"), self.pair("b"))
        self.same("one", "a", 2e-2)
        self.assertNotEqual(self.pair("one"), self.pair("a"))

    def test_shares_by_speed_and_given(self):
        self.good(*self.words("--epochs", "3", "--save", "one"))
        self.on_ranks(*self.words("--epochs", "3", "--save", "auto"))
        self.same("one", "auto")
        last = self.on_each(*((harness.TUTTI, *self.words("--epochs", "3", "--save", "given", "--json", "--shares", share))
                              for share in (3, 1))).lines()[-1]
        self.same("one", "given")
        self.assertEqual(last["devices"][0]["samples"], 3 * (3 * 48 + 6))

    def test_two_hosts(self):
        self.good(*self.words("--epochs", "2", "--save", "one"))
        namespaces = pathlib.Path(__file__).with_name("namespaces")
        environment = {name: os.environ[name] for name in ("POCL_CACHE_DIR", "TUTTI_CACHE_DIR", "TUTTI_OPTIMISE") if name in os.environ}
        self.on_ranks(*self.words("--epochs", "2", "--save", "two", "--shares", "equal"), starter=(
            namespaces, "env", f"--chdir={self.folder}", *(f"{name}={value}" for name, value in environment.items())))
        self.same("one", "two")

    def test_averages(self):
        """Without momentum, averaging after each step is what summing is."""
        plain = ("--momentum", "0", "--optimizer", "sgd", "--shares", "equal")
        self.good(*self.words("--epochs", "2", "--save", "one", *plain))
        self.on_ranks(*self.words("--epochs", "2", "--save", "two", "--average-every", "1", *plain))
        self.assertEqual({name for name, _ in harness.tensors(self.folder / "one.safetensors")},
                         {name for name, _ in harness.tensors(self.folder / "two.safetensors")})
        expected, found = (dict(harness.tensors(self.folder / f"{name}.safetensors")) for name in ("one", "two"))
        for name, values in expected.items():
            largest = max(abs(value) for value in values)
            self.assertLessEqual(max(abs(a - b) for a, b in zip(values, found[name])), TOLERANCE * largest, name)
        lines = self.on_ranks(*self.words("--epochs", "4", "--save", "some", "--average-every", "3", "--json")).lines()
        self.assertLess(lines[3]["loss"], lines[0]["loss"])
        self.assertEqual((lines[0]["samples"], lines[-1]["samples"]), (200, 800))
        self.good(*self.words("--epochs", "5", "--resume", "some"))

    def test_averages_of_unlike_ranks(self):
        """A rank of two devices has states on the host from the beginning, one of a single device has not."""
        words = self.words("--epochs", "2", "--optimizer", "adam", "--average-every", "2", "--save", "m")
        two = ("env", "POCL_DEVICES=pthread pthread", harness.TUTTI)
        for programs in (((harness.TUTTI,), two), (two, (harness.TUTTI,))):
            self.on_each(*((*program, *words) for program in programs))
            self.good(*self.words("--epochs", "3", "--resume", "m", "--optimizer", "adam"))

    def test_resume_with_other_ranks(self):
        self.good(*self.words("--epochs", "3", "--save", "one"))
        self.on_ranks(*self.words("--epochs", "1", "--save", "two", "--shares", "equal"))
        self.good(*self.words("--epochs", "2", "--resume", "two"))
        self.on_ranks(*self.words("--epochs", "3", "--resume", "two", "--shares", "equal"))
        self.same("one", "two")

    def ranks_of(self, program):
        """Process numbers of the ranks, the first rank's first."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                words = dict(word.split("=", 1) for word in path.read_text(errors="replace").split("\0") if "=" in word)
                command = (path.parent / "comm").read_text().strip()
                parent = int((path.parent / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if command == "tutti" and "OMPI_COMM_WORLD_RANK" in words and parent == program.pid:
                found[int(words["OMPI_COMM_WORLD_RANK"])] = int(path.parent.name)
        return [found[rank] for rank in sorted(found)]

    def begin_endless(self, **environment):
        program = self.start_ranks(*self.words("--epochs", "100000", "--save", "m", "--shares", "equal"), **environment)
        until = time.monotonic() + 300
        while not (self.folder / "m.safetensors").exists() and program.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        ranks = self.ranks_of(program)
        self.assertEqual(len(ranks), 2)
        return program, ranks

    def goes_on(self, ranks=()):
        """What was saved serves, once the processes of the ranks are gone: mpirun does not wait for all it ends."""
        until = time.monotonic() + 60
        while any(pathlib.Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < until:
            time.sleep(0.05)
        epochs = json.loads(self.good(*self.words("--resume", "m", "--steps", "1", "--json")).output.splitlines()[0])["epoch"]
        self.assertGreaterEqual(epochs, 1)

    def test_killed_rank_ends_the_others(self):
        program, ranks = self.begin_endless()
        started = time.monotonic()
        os.kill(ranks[1], signal.SIGKILL)
        _, errors = program.communicate(timeout=60)
        self.assertLess(time.monotonic() - started, 60)
        self.assertNotEqual(program.returncode, 0)
        self.assertIn("signal 9", errors)
        self.goes_on(ranks)

    def test_hanging_rank_is_noticed(self):
        program, ranks = self.begin_endless(TUTTI_HOST_LIMIT=3)
        until = time.monotonic() + 60
        while program.poll() is None and time.monotonic() < until:
            try:  # again and again: mpirun hands on a SIGCONT of its own
                os.kill(ranks[1], signal.SIGSTOP)
            except ProcessLookupError:
                pass
            time.sleep(0.05)
        if program.poll() is None:
            program.kill()
        _, errors = program.communicate(timeout=60)
        self.assertNotEqual(program.returncode, 0)
        self.assertIn("rank 1 has not answered", errors)
        self.assertIn("resume from 'm'", errors)
        self.goes_on(ranks)

    def broken(self, devices, **order):
        """The words that start a program whose devices of POCL are broken by tests/faults' layer."""
        words = {"POCL_DEVICES": " ".join(["pthread"] * devices), "OPENCL_LAYERS": BUILD / "tests/faults/liblayer.so",
                 **{f"LAYER_{name.upper()}": value for name, value in order.items()}}
        return ["env", *(f"{name}={value}" for name, value in words.items()), harness.TUTTI]

    def test_lost_device_of_a_rank(self):
        """The rank's other device does its part, and the sums are those of all samples."""
        self.good(*self.words("--epochs", "3", "--save", "one"))
        words = self.words("--epochs", "3", "--save", "two", "--shares", "equal")
        broken = self.broken(2, device=1, kind="launch", at=60, action="lose")
        outcome = self.on_each((harness.TUTTI, *words), (*broken, *words))
        self.assertIn("is lost, 1 of 2 go on", outcome.errors)
        self.same("one", "two")

    def test_lost_rank(self):
        """Its only device fails: all end, and what was saved serves."""
        words = self.words("--epochs", "100000", "--save", "m", "--shares", "equal")
        broken = self.broken(1, kind="launch", at=1500, action="lose")
        outcome = self.on_each((harness.TUTTI, *words), (*broken, *words), status=1)
        self.assertIn("rank 1: ", outcome.errors)
        self.assertIn("resume from 'm'", outcome.errors)
        self.goes_on()

    def test_sums_that_overflow(self):
        done = subprocess.run([*MPIRUN, "-np", "2", BUILD / "tests/hosts/test_ranks"], env=self.environment(self.ranks),
                              timeout=300, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0: good", "rank 1: good"])

    def run_ranks(self, name, starter=(*MPIRUN, "-np", "2"), good=(0, 1), program="test_sync_ranks"):
        environment = self.environment({**self.ranks, "POCL_DEVICES": "pthread pthread", "TUTTI_HELPER": "off"})
        done = subprocess.run([*starter, BUILD / "tests/hosts" / program, name], env=environment, timeout=600,
                              capture_output=True, text=True, check=False)
        said = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
        self.assertEqual(said, [f"rank {rank}: good" for rank in good], done.stdout + done.stderr)
        return done

    def test_statistics_over_ranks(self):
        """Over a network; ranks on one machine have the faults."""
        namespaces = pathlib.Path(__file__).with_name("namespaces")
        names = ("POCL_DEVICES", "POCL_CACHE_DIR", "TUTTI_CACHE_DIR", "TUTTI_HELPER", "TUTTI_OPTIMISE")
        environment = self.environment({"POCL_DEVICES": "pthread pthread", "TUTTI_HELPER": "off"})
        self.run_ranks("equal", (namespaces, "env", *(f"{name}={environment[name]}" for name in names if name in environment)))

    def test_faults_between_all_reduces_of_ranks(self):
        self.assertEqual(self.run_ranks("faults").returncode, 0)
        self.run_ranks("silent", good=(0,))

    def test_divisions_are_prepared_during_steps(self):
        for name in ("change", "refuse", "hang"):
            self.assertEqual(self.run_ranks(name, program="test_divisions").returncode, 0)

    def test_parameters_over_ranks(self):
        for name in ("equal", "other", "lengths", "scales", "unread", "again", "none", "alone"):
            self.assertEqual(self.run_ranks(name, program="test_parameter_ranks").returncode, 0)
        for name in ("silent", "leaves"):
            self.run_ranks(name, good=(0,), program="test_parameter_ranks")

    def test_interrupt_is_agreed_on(self):
        program, ranks = self.begin_endless()
        os.kill(ranks[1], signal.SIGTERM)
        _, errors = program.communicate(timeout=60)
        self.assertIn("interrupted after step", errors)
        self.goes_on()

    def test_ranks_must_agree(self):
        one, other = ((harness.TUTTI, *self.words("--epochs", "1", "--seed", seed)) for seed in (1, 3))
        outcome = self.on_each(one, other, status=1)
        self.assertIn("rank 1 and rank 0 have different seeds: start all ranks with the same", outcome.errors)
        outcome = self.on_each(one, (harness.TUTTI, *self.words("--epochs", "1", "--seed", 1, "--momentum", "0.8")), status=1)
        self.assertIn("rank 1 and rank 0 have different optimizers, or options of them", outcome.errors)
        outcome = self.on_each(one, (harness.TUTTI, *self.words("--epochs", "2", "--seed", 1)), status=1)
        self.assertIn("rank 1 and rank 0 have different numbers of epochs or steps", outcome.errors)
        wrong = (harness.TUTTI, *self.words("--epochs", "1", "--optimizer", "sgd", "--momentum", "1"))
        outcome = self.on_each(one, wrong, status=1)
        self.assertIn("rank 1: momentum is 1", outcome.errors)
        outcome = self.on_each(one, (harness.TUTTI, "train", "mlp", "--data", "nowhere"), status=1)
        self.assertIn("nowhere", outcome.errors)


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        sys.exit("mpirun is missing: apt-get install openmpi-bin")
    harness.main()
