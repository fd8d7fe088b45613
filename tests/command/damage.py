"""Bad input: each gets one clear line that names the file, a status other than 0, and loses nothing."""
import ctypes
import gzip
import json
import os
import resource
import signal
import struct

import harness


class BadData(harness.CommandTest):
    def refuse(self, words, content, name="train-images-idx3-ubyte"):
        data = harness.write_mnist(self.folder / "data", side=28)
        (data / name).write_bytes(content)
        self.refused(1, [name, *words], "train", "mlp", "--data", data, "--save", "m")
        self.assertFalse((self.folder / "m.safetensors").exists())

    def test_idx(self):
        good, labels = harness.images(200, 28)
        self.refuse([], b"")
        self.refuse([], good[:3])
        self.refuse([], good[:-1])
        self.refuse([], good + b"\0")
        self.refuse([], b"\0\0\x0d\x03" + good[4:])  # of floats
        self.refuse([], harness.idx(200, 28 * 28, data=good[16:]))  # two dimensions
        self.refuse([], struct.pack(">HBB3I", 0, 8, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))  # more than there can be
        self.refuse([], struct.pack(">HBB3I", 0, 8, 3, 0, 28, 28))
        self.refuse([], labels[:-1], "train-labels-idx1-ubyte")
        self.refuse([], harness.idx(100, data=labels[8:108]), "train-labels-idx1-ubyte")  # fewer labels than images

    def test_gzip(self):
        data = harness.write_mnist(self.folder / "packed", packed=True, side=28)
        self.good("train", "mlp", "--data", data, "--steps", "1", "--batch", "20")
        name = "train-images-idx3-ubyte.gz"
        packed = (data / name).read_bytes()
        for content in (packed[:-9], packed[:20], b"\x1f\x8b" + os.urandom(64), gzip.compress(b"nothing of the kind")):
            (data / name).write_bytes(content)
            self.refused(1, name, "train", "mlp", "--data", data)

    def test_cifar(self):
        data = self.folder / "cifar"
        data.mkdir()
        record = bytes([3]) + bytes(3072)
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            (data / name).write_bytes(record * 20)
        self.refused(1, "one class, '3'", "train", "mlp", "--data", data, "--steps", "1", "--batch", "20")
        (data / "data_batch_1.bin").write_bytes(record * 19 + bytes([4]) + bytes(3072))
        self.good("train", "mlp", "--data", data, "--steps", "1", "--batch", "20")
        for content in (b"", record[:-1], record * 20 + b"\0", bytes([10]) + bytes(3072)):
            (data / "data_batch_3.bin").write_bytes(content)
            self.refused(1, "data_batch_3.bin", "train", "mlp", "--data", data)
        (data / "data_batch_3.bin").unlink()
        self.refused(1, "data_batch_3.bin", "train", "mlp", "--data", data)

    def test_no_data(self):
        self.refused(1, "/nonexistent", "train", "mlp", "--data", "/nonexistent")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(1, str(empty), "train", "mlp", "--data", empty)


class BadCheckpoints(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data", side=28)
        self.good("train", "mlp", "--data", self.data, "--epochs", "1", "--save", "m")

    def damaged(self, content):
        (self.folder / "bad.safetensors").write_bytes(content)
        for command in ("eval", "infer"):
            self.refused(1, "bad.safetensors", command, "mlp", "--data", self.data, "--weights", "bad.safetensors")

    def test_weights(self):
        whole = (self.folder / "m.safetensors").read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + size])
        self.damaged(b"")
        self.damaged(whole[:7])
        self.damaged(whole[:size])
        self.damaged(whole[:-4])
        self.damaged(whole + b"\0\0\0\0")
        self.damaged(struct.pack("<Q", 1 << 60) + whole[8:])
        self.damaged(struct.pack("<Q", size) + b"x" * size + whole[8 + size:])

        def changed(change):
            other = json.loads(json.dumps(header))
            change(other)
            text = json.dumps(other).encode()
            return struct.pack("<Q", len(text)) + text + whole[8 + size:]

        self.damaged(changed(lambda h: h["fc1.weight"]["data_offsets"].reverse()))
        self.damaged(changed(lambda h: h["fc1.weight"].update(shape=[1 << 40, 1 << 40])))
        self.damaged(changed(lambda h: h["fc1.weight"].update(dtype="F17")))
        self.damaged(changed(lambda h: h.update(stranger=h.pop("fc1.weight"))))
        self.damaged(changed(lambda h: h["fc1.weight"].update(shape=h["fc1.weight"]["shape"][::-1])))

    def test_missing(self):
        self.refused(1, "none.safetensors", "eval", "mlp", "--data", self.data, "--weights", "none.safetensors")
        self.refused(1, "none", "train", "mlp", "--data", self.data, "--resume", "none")

    def test_of_another_network(self):
        before = self.pair("m")
        self.refused(1, "m.safetensors", "eval", "lenet", "--data", self.data, "--weights", "m.safetensors")
        self.refused(1, "m.", "train", "lenet", "--data", self.data, "--resume", "m", "--epochs", "2")
        self.assertEqual(self.pair("m"), before)

    def test_state_is_damaged(self):
        weights, state = self.pair("m")
        for content in (b"", state[:-1], state[:100], b"\xff" * 64):
            (self.folder / "m.state.safetensors").write_bytes(content)
            self.refused(1, "m.state.safetensors", "train", "mlp", "--data", self.data, "--resume", "m", "--epochs", "2")
            self.assertEqual(self.pair("m"), (weights, content))

    def test_pair_of_two_trainings(self):
        self.good("train", "mlp", "--data", self.data, "--epochs", "2", "--save", "other")
        (self.folder / "m.state.safetensors").write_bytes(self.pair("other")[1])
        self.refused(1, "m", "train", "mlp", "--data", self.data, "--resume", "m", "--epochs", "3")


def no_large_files():
    """Files end at 1 MiB: writing more fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def without_override():
    """The permissions of files bind root, too."""
    drop_from_bounding_set, override = 24, 1        # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    ctypes.CDLL(None).prctl(drop_from_bounding_set, override, 0, 0, 0)


class Saving(harness.CommandTest):
    def setUp(self):
        super().setUp()
        self.data = harness.write_mnist(self.folder / "data", side=28)

    def test_full_disk(self):
        self.good("train", "mlp", "--data", self.data, "--epochs", "1", "--save", "m")
        before, files = self.pair("m"), sorted(os.listdir(self.folder))
        outcome = self.refused(1, "m", "train", "mlp", "--data", self.data, "--epochs", "3", "--resume", "m", before=no_large_files)
        self.assertIn("epoch 2 is not saved, training goes on", outcome.errors)
        self.assertIn("epoch 3 is not saved", outcome.errors)
        self.assertEqual(self.pair("m"), before)
        self.assertEqual(sorted(os.listdir(self.folder)), files)

    def test_folders_that_cannot_be_written(self):
        """This is noticed before the training."""
        (self.folder / "file").write_text("a file")
        (self.folder / "closed").mkdir(0o555)
        for name in ("file/model", "missing/model", "closed/model", "/sys/kernel/model"):
            with self.subTest(name):
                outcome = self.refused(1, name, "train", "mlp", "--data", self.data, "--epochs", "1", "--save", name,
                                       before=without_override)
                self.assertNotIn("epoch", outcome.output + outcome.errors)

    def test_not_a_number(self):
        self.good("train", "mlp", "--data", self.data, "--epochs", "1", "--save", "m")
        before = self.pair("m")
        outcome = self.refused(1, ["step", "loss"], "train", "mlp", "--data", self.data, "--epochs", "9", "--resume", "m",
                               "--lr", "1e25")
        self.assertRegex(outcome.errors.splitlines()[-1], r"step \d+")
        self.assertEqual(self.pair("m"), before)

    def test_standard_output_is_full(self):
        with open("/dev/full", "w") as full:
            process = harness.subprocess.run([harness.TUTTI, "devices", "--json"], stdout=full, stderr=harness.subprocess.PIPE,
                                             text=True, check=False)
        self.assertEqual(process.returncode, 1)


class Memory(harness.CommandTest):
    def test_micro_batches(self):
        data = harness.write_mnist(self.folder / "data", side=28)
        lines = self.good("train", "lenet", "--data", data, "--batch", "100", "--memory-limit", "16", "--epochs", "1",
                          "--json").lines()
        self.assertLessEqual(lines[-1]["devices"][0]["memory_bytes"], 16 << 20)

    def test_one_sample_does_not_fit(self):
        self.refused(1, ["memory"], "bench", "vgg16", "--batch", "2", "--memory-limit", "64")


harness.main()
