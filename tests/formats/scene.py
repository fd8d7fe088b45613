"""What make_images.py and make_decoded.py share: a picture, and the arrays of a file that is written."""
import io

import numpy
from PIL import Image, ImageOps

WIDTH, HEIGHT = 21, 13
arrays = {}


def scene(width=WIDTH, height=HEIGHT):
    """A smooth picture with edges, in colours."""
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    red = 255 * x / (width - 1)
    green = 255 * y / (height - 1)
    blue = 127 + 120 * numpy.sin(x / 3 + y / 5)
    blue[height // 3:height // 2, width // 4:width // 2] = 250
    return Image.fromarray(numpy.stack([red, green, blue], -1).round().astype(numpy.uint8))


def keep(name, data, rgb=None, mask=None):
    """Records a file; without `rgb`, Pillow says what is in it."""
    arrays["file/" + name] = numpy.frombuffer(data, numpy.uint8)
    if rgb is None:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        rgb = image.convert("RGB")
    arrays["rgb/" + name] = numpy.asarray(rgb)
    if mask is not None:
        arrays["mask/" + name] = numpy.asarray(mask, numpy.uint8)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
