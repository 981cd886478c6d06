"""Screenshots of a report, and how long a browser takes until it can be used.

python benchmarks/report_pictures.py demo/report.html --from scores --to patterns --figure report.png
"""

import argparse
import shutil
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--from", dest="first", default="asked", help="id of the first section")
    parser.add_argument("--to", dest="last", default="repeat", help="id of the last section")
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--figure", type=Path, help="png to write")
    parser.add_argument("--pdf", type=Path, help="what a printer would get")
    options = parser.parse_args()

    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": options.width, "height": 900})
        page.goto(options.report.resolve().as_uri())
        page.wait_for_selector("html[data-ready]")
        print(f"ready after {page.get_attribute('html', 'data-ready')} ms")
        if options.figure is not None:
            first, last = (
                page.locator(f"#{name}").bounding_box() for name in (options.first, options.last)
            )
            place = {"x": 0, "y": first["y"], "width": options.width}
            place["height"] = last["y"] + last["height"] - first["y"] + 10
            page.screenshot(path=options.figure, full_page=True, clip=place)
            # rare colours are those of few points, and count too
            image = Image.open(options.figure).convert("RGB")
            small = image.quantize(
                256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
            )
            small.save(options.figure, optimize=True)
            print(f"{options.figure}: {options.figure.stat().st_size // 1000} kB")
        if options.pdf is not None:
            page.pdf(path=options.pdf, format="A4")
        browser.close()


if __name__ == "__main__":
    main()
