#!/usr/bin/env python3
"""Opens the pages of --html in headless Chromium: no console errors, every chart, map and picture drawn, also after a
click on everything that can be clicked, light and dark, wide and narrow.

usage: check_pages.py TREADLE [FOLDER]    FOLDER keeps the pages and screenshots of them"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Chooses every item of every list, presses every button and map, and moves over the drawings.
CLICK = """<script>
for (const s of document.querySelectorAll('select'))
  for (let i = s.options.length - 1; i >= 0; --i) { s.selectedIndex = i; s.dispatchEvent(new Event('change')); }
for (const b of document.querySelectorAll('button, [role="button"]')) b.click();
for (const c of document.querySelectorAll('canvas, .picture svg')) {
  const r = c.getBoundingClientRect();
  for (const part of [.3, .6, 2])
    for (const type of ['pointermove', 'mousemove', 'pointerleave'])
      c.dispatchEvent(new PointerEvent(type, {clientX: r.left + part * r.width, clientY: r.top + part * r.height, bubbles: true}));
}
window.dispatchEvent(new Event('beforeprint'));
window.dispatchEvent(new Event('afterprint'));
document.body.dataset.clicked = 'yes';
</script>
"""


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    sys.exit("check_pages: no chromium; Debian's package is chromium (./check --full installs it)")


def browse(browser, page, dark, width, *what):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", "--enable-logging=stderr", "--virtual-time-budget=8000",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--window-size={width},3600", *what,
             page.as_uri()], capture_output=True, text=True, timeout=180)


def check(browser, page, keep):
    bad = []
    clicked = page.with_name(f"clicked {page.name}")
    clicked.write_text(page.read_text().replace("</body>", CLICK + "</body>"))
    for dark, width in ((False, 1280), (True, 480)):
        r = browse(browser, clicked, dark, width, "--dump-dom")
        where = f"{page.name}, {'dark' if dark else 'light'}, {width} wide"
        bad += [f"{where}: {line}" for line in r.stderr.splitlines() if "CONSOLE" in line]
        for flag in ("ready", "clicked"):
            if f'data-{flag}="yes"' not in r.stdout:
                bad.append(f"{where}: the scripts did not get to '{flag}'")
        canvases = re.findall(r"<canvas[^>]*>", r.stdout)
        drawn = [c for c in canvases if re.search(r'data-drawn="[1-9]', c)]
        pictures = len(re.findall(r"<svg[ >]", r.stdout))
        if len(drawn) != len(canvases):
            bad.append(f"{where}: {len(canvases) - len(drawn)} of {len(canvases)} drawings are empty")
        if not canvases and not pictures:
            bad.append(f"{where}: nothing is drawn")
        print(f"{where}: {len(drawn)} canvases, {pictures} pictures")
    if keep:
        for dark, width in ((False, 1280), (True, 1280), (False, 480)):
            shot = page.with_name(f"{page.stem}.{'dark' if dark else 'light'}.{width}.png")
            browse(browser, page, dark, width, f"--screenshot={shot}")
    clicked.unlink()
    return bad


def pages(treadle, folder):
    """(file, arguments) of each kind of page."""
    few = ["--repetitions", "2", "--backend", "simd"]
    models = ROOT / "tests" / "data" / "models"
    made = [
        ("compare.html", ["compare", "--lengths", "128:1024", "--heads", "2", *few]),
        ("real values.html", ["compare", "--qkv", ROOT / "examples" / "data" / "minilm_layer2_512", *few]),
        ("explain gpt.html", ["explain", "tiny_gpt"]),
        ("explain written out.html", ["explain", "written_out"]),
        ("explain encoder and decoder.html", ["explain", "encoder_decoder"]),
    ]
    # A BERT with letters for words: its vocabulary is made here.
    bert = folder / "bert"
    bert.mkdir(exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        shutil.copy(models / "bert" / file, bert)
    letters = [c + x for x in "abcdefghijklmnopqrstuvwxyz" for c in ("", "##")]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    words += [f"[unused{i}]" for i in range(len(words), 120)]
    (bert / "vocab.txt").write_text("\n".join(words) + "\n")
    text = folder / "a text \"of\" <b>letters.txt"
    text.write_text(" ".join("abcdefghijklmnopqrstuvwxyz"[i * 7 % 26 :][: 1 + i % 5] for i in range(200)))
    made.append(("checkpoint.html", ["compare", "--checkpoint", bert, "--text", text, "--tokens", "24", "--passages", "6",
                                     "--variants", "window:8,8,linear,window:2,2"]))
    perplexity = ROOT / "tests" / "data" / "perplexity"
    made.append(("language model.html", ["compare", "--checkpoint", perplexity / "gpt2", "--text", perplexity / "text.txt",
                                         "--tokens", "24", "--passages", "6", "--variants", "window:7,0,linear"]))
    for name, arguments in made:
        r = subprocess.run([treadle, *arguments, "--html", folder / name], capture_output=True, text=True)
        if r.returncode != 0:
            sys.exit(f"check_pages: treadle {' '.join(map(str, arguments))}: {r.stderr}")
        yield folder / name


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    treadle, browser = pathlib.Path(sys.argv[1]).resolve(), chromium()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        bad = [b for page in pages(treadle, folder) for b in check(browser, page, len(sys.argv) > 2)]
    print("\n".join(bad) or "every page draws everything")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
