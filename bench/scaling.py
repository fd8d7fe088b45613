#!/usr/bin/env python3
"""What many unlike devices would reach together: a simulator of one training step.

  bench/scaling.py                                    the tables of docs/scaling.md
  bench/scaling.py --picture docs/scaling.svg         and its picture
  bench/scaling.py --check RESULT.json                next to a run of bench/together --json (rates alone and together)
  bench/scaling.py --ranks MODEL:BATCH ...            next to a run of two ranks on this machine, a core each

A device takes a + b n seconds for n samples; automatic shares end all devices of a step at the same time, in whole
samples. On each host, gradients (4 bytes a parameter) come over its bus from every device and parameters go back; the
host reads all gradients, writes a sum, and updates: momentum reads three arenas and writes two. Hosts sum over the
network in a ring, which moves 2 (m - 1) / m of the gradients in and out of each. A device whose part would be less than
a sample is left out. --overlap is the part of exchange and network that hides behind backward. --overhead is what a step
of several hosts takes on top, whatever its length: threads hand over to each other, all wait for the slowest, all vote."""
import argparse
import json
import math
import os
import statistics
import subprocess

# Parameters and multiply-adds of a sample's forward pass, in millions; what a backward pass costs on top is twice that.
NETWORKS = {"resnet50": (25.6, 4100), "vgg16": (138.4, 15500), "mobilenet_v2": (3.5, 300)}
SIZES = {"resnet18": 11.7e6, "vgg16": 138.4e6, "lenet": 62e3, "mlp": 535e3}  # parameters of those measured
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="10,5,2.5", metavar="LIST", help="TFLOP/s that devices reach, in turns")
    parser.add_argument("--fixed", type=float, default=2e-3, metavar="S", help="a: seconds of a step without samples")
    parser.add_argument("--samples", type=int, default=64, metavar="N", help="batch per device")
    parser.add_argument("--per-host", type=int, default=8, metavar="N")
    parser.add_argument("--bus", type=float, default=12, metavar="GB/S", help="of a device to its host, each way")
    parser.add_argument("--host-bus", type=float, default=40, metavar="GB/S", help="of all devices of a host")
    parser.add_argument("--memory", type=float, default=100, metavar="GB/S", help="of the host, for sums and updates")
    parser.add_argument("--network", type=float, default=1.25, metavar="GB/S", help="of a host's link, each way")
    parser.add_argument("--latency", type=float, default=50e-6, metavar="S", help="of a message between hosts")
    parser.add_argument("--overhead", type=float, default=0, metavar="S", help="of hosts in a step, besides what is sent")
    parser.add_argument("--overlap", type=float, default=0.5, metavar="X", help="0 to 1")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="steps between sums of hosts (--average-every)")
    parser.add_argument("--picture", metavar="FILE")
    parser.add_argument("--check", metavar="FILE", help="lines of bench/together --json")
    parser.add_argument("--ranks", nargs="+", metavar="MODEL:BATCH", help="measure two ranks on digits, and predict them")
    parser.add_argument("--build", default="build", metavar="DIR")
    return parser.parse_args()


def divide(lines, batch):
    """Whole samples for equal finish; the time of the last device."""
    early, late = 0.0, max(a + b * batch for a, b in lines)
    for _ in range(60):
        middle = (early + late) / 2
        if sum(max(0, math.floor((middle - a) / b)) for a, b in lines) >= batch:
            late = middle
        else:
            early = middle
    parts = [max(0, math.floor((late - a) / b)) for a, b in lines]
    return late, parts


def host_seconds(o, floats, devices):
    """Time of the exchange on one host, which does not depend on who computes what."""
    gigabytes = 4e-9 * floats
    if devices == 1:
        return 0.0, gigabytes * 5 / o.memory
    transfer = 2 * gigabytes * max(1 / o.bus, devices / o.host_bus)
    return transfer, gigabytes * (devices + 2 + 5) / o.memory


def network_seconds(o, floats, hosts):
    if hosts == 1:
        return 0.0
    gigabytes = 4e-9 * floats
    return (2 * (hosts - 1) / hosts * gigabytes / o.network + 2 * (hosts - 1) * o.latency) / o.every


def overhead_seconds(o, hosts):
    return o.overhead / o.every if hosts > 1 else 0.0


def simulate(o, name, devices):
    """Samples per second of so many devices, of all alone added up, and where the time goes."""
    floats, flops = NETWORKS[name][0] * 1e6, 6e6 * NETWORKS[name][1]
    rates = [float(rate) * 1e12 for rate in o.rates.split(",")]
    lines = [(o.fixed, flops / rates[i % len(rates)]) for i in range(devices)]
    batch = o.samples * devices
    update = 5 * 4e-9 * floats / o.memory  # a device alone updates itself
    solo = sum(o.samples / (a + b * o.samples + update) for a, b in lines)
    compute, parts = divide(lines, batch)
    hosts = math.ceil(devices / o.per_host)
    used = min(devices, o.per_host)
    transfer, host = host_seconds(o, floats, used)
    network = network_seconds(o, floats, hosts)
    hidden = min(o.overlap * (transfer + network), 2 / 3 * compute)  # backward is two thirds of a step
    seconds = compute + transfer + network - hidden + host + overhead_seconds(o, hosts)
    return {"rate": sum(parts) / seconds, "of_sum": sum(parts) / seconds / solo, "compute": compute, "transfer": transfer,
            "host": host, "network": network, "seconds": seconds}


def table(o, name):
    print(f"\n{name}, {o.per_host} devices a host, every {o.every} steps, network {o.network} GB/s")
    print("devices  samples/s  of the sum  compute ms  bus ms  host ms  network ms")
    for count in COUNTS:
        r = simulate(o, name, count)
        print(f"{count:7} {r['rate']:10.0f} {r['of_sum']:11.2f} {1e3 * r['compute']:11.1f} {1e3 * r['transfer']:7.1f} "
              f"{1e3 * r['host']:8.1f} {1e3 * r['network']:11.1f}")


def check(o):
    """Two measured devices: a is not known apart from b, so the lines go through the origin. The same host's memory
    serves both; mapped gradients cost no transfer, parameters are copied."""
    print(f"{'network':14} {'simulated':>10} {'measured':>10} {'error':>7}")
    for line in open(o.check, encoding="utf-8"):
        measured = json.loads(line)
        model, batch = measured["network"].split(":")
        gigabytes = 4e-9 * SIZES[model]
        update = 5 * gigabytes / o.memory
        lines = [(0.0, (int(batch) / rate - update) / int(batch) / measured["ceiling"]) for rate in measured["alone"]]
        seconds, parts = divide(lines, int(batch))
        seconds += gigabytes * (4 + 5 + 3) / o.memory  # sum, update, parameters to two devices at the same time
        rate = max(sum(parts) / seconds, max(measured["alone"]))
        print(f"{measured['network']:14} {rate:10.1f} {measured['automatic']:10.1f} {rate / measured['automatic'] - 1:+7.1%}")


def run(commands):
    """Programs side by side, a core each; the objects that they print last."""
    environment = {**os.environ, "POCL_MAX_PTHREAD_COUNT": "1"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
               for command in commands]
    return [json.loads(program.communicate()[0].splitlines()[-1]) for program in running]


def check_ranks(o):
    """a and b are fitted from two sizes, while the other core does the same work and exchanges nothing: what the cores
    take from each other is in them. A rank alone updates itself; together, the sums go round and each rank updates. What
the steps of the first network take longer than that is the overhead, unless --overhead gives it; the others are predicted
with it."""
    tutti = f"{o.build}/tools/tutti"
    print(f"{'network':14} {'a ms':>8} {'b ms':>8} {'overhead ms':>10} {'simulated':>10} {'measured':>10} {'error':>7}")
    for network in o.ranks:
        model, batch = network.split(":")
        words = [tutti, "train", model, "--data", "digits", "--shares", "equal", "--epochs", "2", "--json", "--threads", "1"]
        sizes = int(batch) // 2, int(batch) // 4
        large, small = (statistics.mean(n / r["samples_per_s"] for r in run(2 * [[*words, "--batch", str(n)]])) for n in sizes)
        gigabytes = 4e-9 * SIZES[model]
        b = (large - small) / (sizes[0] - sizes[1])
        a = large - b * sizes[0] - 5 * gigabytes / o.memory
        transfer, host = network_seconds(o, SIZES[model], 2), gigabytes * (3 + 5) / o.memory
        hidden = min(o.overlap * transfer, 2 / 3 * (a + b * sizes[0]))
        seconds = a + b * sizes[0] + transfer - hidden + host
        together = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", *words, "--batch", batch]
        measured = run([together])[0]["samples_per_s"]
        missing, rate = int(batch) / measured - seconds, int(batch) / (seconds + o.overhead)
        print(f"{network:14} {1e3 * a:8.3f} {1e3 * b:8.4f} {1e3 * missing:10.2f} {rate:10.1f} {measured:10.1f} {rate / measured - 1:+7.1%}")
        o.overhead = o.overhead or max(0, missing)


def picture(o, path):
    """Part of the sum over devices: one line a network, dashed with averages every 16 steps."""
    width, height, left, bottom = 640, 360, 60, 50
    colours = ("#1f77b4", "#d62728", "#2ca02c")

    def x(count):
        return left + (width - left - 150) * math.log2(count) / math.log2(COUNTS[-1])

    def y(part):
        return height - bottom - (height - bottom - 20) * min(part, 1.05) / 1.05

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for part in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<line x1="{left}" x2="{x(1000):.0f}" y1="{y(part):.0f}" y2="{y(part):.0f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y(part) + 4:.0f}" text-anchor="end">{part}</text>')
    for count in COUNTS:
        out.append(f'<text x="{x(count):.0f}" y="{height - bottom + 18}" text-anchor="middle">{count}</text>')
    out.append(f'<text x="{x(32):.0f}" y="{height - 10}" text-anchor="middle">devices, {o.per_host} a host</text>'
               f'<text x="14" y="{y(0.5):.0f}" transform="rotate(-90 14 {y(0.5):.0f})" text-anchor="middle">part of the sum</text>')
    row = 0
    for name, colour in zip(NETWORKS, colours):
        for every, dash in ((1, ""), (16, ' stroke-dasharray="6 4"')):
            o.every = every
            points = " ".join(f"{x(c):.1f},{y(simulate(o, name, c)['of_sum']):.1f}" for c in COUNTS)
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
            label = name if every == 1 else f"every {every} steps"
            out.append(f'<line x1="{width - 140}" x2="{width - 115}" y1="{40 + 18 * row}" y2="{40 + 18 * row}" stroke="{colour}" '
                       f'stroke-width="2"{dash}/><text x="{width - 110}" y="{44 + 18 * row}">{label}</text>')
            row += 1
    o.every = 1
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


def main():
    o = arguments()
    if o.ranks or o.check:
        (check_ranks if o.ranks else check)(o)
        return
    for name in NETWORKS:
        table(o, name)
    if o.picture:
        picture(o, o.picture)


if __name__ == "__main__":
    main()
