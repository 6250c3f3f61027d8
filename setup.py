"""Build of tvm_neuron: two packages and two small C++ libraries, one of them on tvm_ffi's stable headers."""

from contextlib import suppress
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext


class BuildRuntime(build_ext):
    """Compiles libraries that are loaded by their path, not Python extensions."""

    def build_extension(self, ext: Extension) -> None:
        from tvm_ffi import libinfo  # a build requirement, see pyproject.toml

        if "tvm_ffi" in ext.libraries:
            ext.include_dirs = libinfo.include_paths()
            ext.library_dirs = [str(Path(libinfo.find_libtvm_ffi()).parent)]
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []


COMMANDS = {"build_ext": BuildRuntime}
with suppress(ImportError):  # an older setuptools builds in place, but pyproject.toml asks for a newer one for wheels
    from setuptools.command.bdist_wheel import bdist_wheel

    class AnyPythonsWheel(bdist_wheel):
        """One for all versions of Python: the libraries use nothing of its interface."""

        def get_tag(self) -> tuple[str, str, str]:
            return "py3", "none", super().get_tag()[2]

    COMMANDS["bdist_wheel"] = AnyPythonsWheel

INSTALL_REQUIRES = [
    "apache-tvm>=0.27,<0.28",  # Relax, TOPI, the CPU back end and the runtime: what this project extends
    "apache-tvm-ffi>=0.1.15,<0.2",  # the C++ headers of the runtime module; comes with apache-tvm
    "ml_dtypes>=0.5",  # bfloat16 in NumPy
    "numpy>=2.1",  # the hardware model's arithmetic, and constant folding
    "onnx>=1.20",  # reads the models; its package also holds the light networks of the demo
    "rich>=13",  # progress and tables of the command line and the demo
    "shtab>=1.7",  # the shells' completion of neuron-cc's words
]

COMPARE_REQUIRES = ["onnxruntime>=1.20"]  # the independent reference: of `neuron-cc compare`, the tests and the demo
HTML_REQUIRES = ["bokeh>=3.7"]  # draws the page of a report
TIMELINE_REQUIRES = ["perfetto>=0.16"]  # the classes of Perfetto's own format of traces
TABLES_REQUIRES = ["pyarrow>=17"]  # writes Parquet

SERVE_REQUIRES = [
    "kserve==0.21.0",  # the messages of the Open Inference Protocol; pinned, since what is used of it is not its front
    "fastapi>=0.115",  # REST; comes with kserve, as do the others
    "grpcio>=1.70",  # gRPC
    "orjson>=3.9",  # JSON with arrays of numbers
    "prometheus_client>=0.20",  # metrics
    "uvicorn>=0.30",  # the server of HTTP
]
CLIENT_REQUIRES = ["tritonclient[grpc,http]>=2.60"]  # asks a server in the tests

EXPLORER_REQUIRES = [
    "ai-edge-model-explorer>=0.1.34",  # shows graphs in a browser: the classes of its adapters, and the server
]

BROWSER_REQUIRES = ["playwright>=1.50"]  # drives a browser, which has to be there: tests of the page

DEV_REQUIRES = [
    *COMPARE_REQUIRES,
    *HTML_REQUIRES,
    *TIMELINE_REQUIRES,
    *TABLES_REQUIRES,
    "hypothesis>=6.100",  # property tests
    "mypy~=2.4.0",  # `make lint`; pinned, so that a new release can not fail what passed
    "pytest>=9.0",  # the tests
    "pytest-xdist>=3.6",  # runs the slow tests on all cores
    "ruff~=0.17.5",  # `make lint`; pinned likewise
]

TORCH_REQUIRES = [  # models of PyTorch; pinned, because exporters change what they write
    "onnxscript==0.7.2",  # torch's dynamo exporter to ONNX
    "torch==2.13.0",  # both exporters, and the backend of torch.compile
    "transformers==5.23.0",  # of the tests: BERT, DistilBERT, GPT-2, ViT with random weights
]

TENSORFLOW_REQUIRES = [  # models of TensorFlow and Keras; pinned, because what they write changes
    "tensorflow-cpu==2.21.0",
    "tf2onnx==1.17.0",  # writes graphs as ONNX
    "tflite==2.18.0",  # reads TFLite files
]

CATALOGUE_REQUIRES = [  # beside `torch`, for `python -m benchmarks.catalogue`; pinned, because a release adds networks
    *TORCH_REQUIRES,
    "diffusers==0.42.1",  # U-Nets, autoencoders and transformers that draw images
    "requests>=2.32",  # diffusers imports it without asking for it
    "safetensors>=0.8",  # timm's weights
    # timm==1.0.31 and torchvision==0.29.2 have to be installed without their requirements: `make catalogue` does
]

SWEEP_REQUIRES = [
    *HTML_REQUIRES,
    *TABLES_REQUIRES,
    "pandas>=2.2",  # the tables of sweeps
    "ray>=2.40",  # runs their points in processes, on one machine or a cluster
]

DOCS_REQUIRES = [  # `make docs`
    "myst-parser>=4",  # pages in Markdown
    "sphinx>=8",  # the pages
    "sphinx-gallery>=0.18",  # runs the tutorials
]

BENCH_REQUIRES = ["iree-base-compiler[onnx]==3.13.0"]  # beside which `python -m benchmarks` measures
EXTRAS = {
    "bench": BENCH_REQUIRES,
    "browser": BROWSER_REQUIRES,
    "catalogue": CATALOGUE_REQUIRES,
    "client": CLIENT_REQUIRES,
    "compare": COMPARE_REQUIRES,
    "dev": DEV_REQUIRES,
    "docs": DOCS_REQUIRES,
    "explorer": EXPLORER_REQUIRES,
    "html": HTML_REQUIRES,
    "serve": SERVE_REQUIRES,
    "sweep": SWEEP_REQUIRES,
    "tables": TABLES_REQUIRES,
    "tensorflow": TENSORFLOW_REQUIRES,
    "timeline": TIMELINE_REQUIRES,
    "torch": TORCH_REQUIRES,
    "jax": ["jax==0.10.2"],  # lowers functions to StableHLO; pinned, because its StableHLO changes with it
}

setup(
    name="tvm-neuron",
    version="0.1.0",
    description="An ahead-of-time compiler for NeuronCore-like accelerators, as an extension of Apache TVM",
    long_description=Path(__file__).with_name("README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    project_urls={"Apache TVM": "https://tvm.apache.org"},
    license="Apache-2.0",
    keywords="compiler accelerator NeuronCore TVM ONNX simulator",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C++",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Software Development :: Compilers",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    packages=["tvm_neuron_schedules", *find_packages(include=["tvm_neuron", "tvm_neuron.*"])],
    py_modules=["neuron_cc"],
    package_dir={"tvm_neuron_schedules": "schedules"},
    package_data={
        "tvm_neuron": ["py.typed"],
        "tvm_neuron.cli": ["pages/*.md"],
        "tvm_neuron.hw": ["chips/*.json", "instances.json"],
        "tvm_neuron.operators": ["*.json"],
        "tvm_neuron.profile.page": ["*.css", "*.js"],
        "tvm_neuron.profile.parquet": ["*.csv"],
        "tvm_neuron.native": ["*.cc", "*.h"],
        "tvm_neuron.runtime": ["*.cc", "*.h"],
    },
    ext_modules=[
        Extension(
            "tvm_neuron.runtime.libneuron_module",
            [
                f"tvm_neuron/runtime/{name}.cc"
                for name in ("convolve", "matmul", "neuron_module", "parallel", "positions")
            ],
            depends=["tvm_neuron/native/apart.h", "tvm_neuron/native/pool.h", "tvm_neuron/runtime/blas.h"],
            libraries=["tvm_ffi"],
            extra_compile_args=["-std=c++17", "-O2", "-fvisibility=hidden", "-g0"],
        ),
        Extension(
            "tvm_neuron.native.libneuron_native",
            [
                f"tvm_neuron/native/{name}.cc"
                for name in ("assign", "chain", "clock", "native", "products", "tape", "waits")
            ],
            depends=[
                f"tvm_neuron/native/{name}.h"
                for name in ("apart", "axes", "calls", "floats", "multiply", "pool", "segments", "tile")
            ],
            # No rounding is left out: products and sums stay two operations.
            extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-g0"],
        ),
    ],
    cmdclass=COMMANDS,
    install_requires=INSTALL_REQUIRES,
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": ["neuron-cc = neuron_cc:main", "tvmc = tvm_neuron.tvmc.main:main"],
        "tvm_neuron.schedules": ["neuron = tvm_neuron_schedules:RULES"],
        "torch_dynamo_backends": ["neuron = tvm_neuron.torch:neuron"],  # for torch.compile(model, backend="neuron")
    },
    zip_safe=False,
)
