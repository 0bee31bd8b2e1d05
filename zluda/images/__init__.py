"""CUDA image containers (PTX text, fatbin, cubin) to PTX text."""

from zluda.images.contents import Code, Contents, ImageError, Ptx, choose
from zluda.images.reader import read_image, read_images

__all__ = ["Code", "Contents", "ImageError", "Ptx", "choose", "read_image", "read_images"]
