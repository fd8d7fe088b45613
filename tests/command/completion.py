"""Words that shells complete: what the command prints for bash, as a shell runs it, and that zsh and fish can read theirs."""
import shutil
import subprocess

import harness


class Completion(harness.CommandTest):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = self.folder / "tutti.bash"
        if not script.exists():
            script.write_text(self.good("completion", "bash").output)
        program = 'source "$0"; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tutti; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", program, script, *words], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash(self):
        for words, offered in ((("tr",), ["train"]), (("train", "le"), ["lenet"]), (("train", "lenet", "--opti"), ["--optimizer"]),
                               (("train", "lenet", "--optimizer", "ada"), ["adam", "adamw", "adagrad"]),
                               (("train", "lenet", "--optimizer", "=", "s"), ["sgd"]), (("help", "ev"), ["eval"]),
                               (("train", "--optimizer", "lion", "m"), ["mlp", "mobilenet_v2"]), (("infer", "lenet", "m"), []),
                               (("train", "lenet", "--epochs", "l"), []), (("train", "lenet", "--data", "x"), []),
                               (("vers",), ["version"])):
            with self.subTest(words):
                self.assertEqual(self.complete("tutti", *words), offered)

    def test_every_option(self):
        for command in ("train", "bench", "op"):
            listed = [line.split()[0] for line in self.good(command, "--help").output.splitlines() if line.startswith("  --")]
            self.assertEqual(sorted(self.complete("tutti", command, "--")), sorted(listed))

    def test_shells_read_theirs(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.folder / f"script.{shell}"
            script.write_text(self.good("completion", shell).output)
            if shutil.which(shell):
                subprocess.run([shell, "-n", script], check=True)
        if shutil.which("fish"):
            done = subprocess.run(["fish", "-c", f"source {script}; complete -C 'tutti train lenet --opti'"], capture_output=True,
                                  text=True, check=True)
            self.assertEqual(done.stdout.split()[0], "--optimizer")
        self.refused(2, "bash, zsh or fish", "completion", "csh")


harness.main()
