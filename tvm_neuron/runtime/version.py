"""The version of the compiler and of its runtime."""

VERSION = "0.1.0"
