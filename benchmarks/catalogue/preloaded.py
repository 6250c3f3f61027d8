"""What exports need, in one import: it is loaded once and forked."""

from benchmarks.catalogue.packages import timm, torchvision

torchvision()
timm()
