"""Names of Relay that are not here, and what to use instead: what `getattr` and `import` say of them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import tvm

_TYPES = "there are no data types of a user's own here: write the model with tensors and tuples"
_REFERENCES = "there are no references here: pass values as arguments and results"
_TRAINING = "there is no training here: train in the framework, import the trained model"
_FIXED = "the code generator chooses layouts and algorithms itself: call the plain operator"
_STRATEGY = "kernels come from TVM's TOPI and the schedule rules: write a rule (CONTRIBUTING.md, 'Add a schedule rule')"
_QUANTISED = "import a quantised ONNX model (QuantizeLinear, QLinearConv, ...) by relay.frontend.from_onnx"
_SIZES = "its size depends on the data: read the model as ONNX, whose importer leaves such operators to the CPU"
_REPORT = "use tvm_neuron.report(library), which counts what was compiled"
_DEVICES = "what runs where is decided by the partition: relay.op.contrib.neuron.partition_for_neuron shows it"
_SPARSE = "sparse weights are compiled as dense ones: keep nn.dense and nn.conv2d"
_TEXT = "text is written, not read: build expressions by relay's functions, keep models as ONNX"
_TREES = "expressions have one form here: use ToANormalForm or ToGraphNormalForm"
_OWN_COMPILERS = "use AnnotateTarget, MergeCompilerRegions and PartitionGraph"
_PRECISION = "use relay.transform.ToMixedPrecision, or BuildOptions(fp32_cast=...), see docs/precision.md"
_ANOTHER = "the code generator of this target is relay.op.contrib.neuron: partition_for_neuron and pattern_table"
_MODELS = "read a model file by relay.frontend, or take a network of relay.testing that is here"
_EXECUTORS = "use relay.create_executor, and NumPy for what results are compared with"
_LOOK = "post_order_visit and ExprVisitor show what is in an expression"
_PRIVATE = "it was a part of TVM itself: use the public functions of relay, docs/relay.md lists them"

PLACES: Mapping[str, Mapping[str, str]] = {
    "relay": {
        _TYPES: "adt Clause Constructor GlobalTypeVar Match Pattern PatternConstructor PatternTuple PatternVar "
        "PatternWildcard Prelude prelude TypeCall TypeConstraint TypeData TypeFunctor TypeKind TypeMutator "
        "TypeRelation TypeVar TypeVisitor type_functor type_relation",
        _REFERENCES: "RefCreate RefRead RefType RefWrite",
        _QUANTISED: "quantize",
        _TEXT: "fromtext parse parse_expr parser SpanCheck",
        "use a loop over a compiled function: there are no loops of unknown length here": "loops",
        'use relay.create_executor("debug")': "debug",
        "use tvm.IRModule": "Module module",
        "use relay.transform and relay.analysis": "ir_pass",
        "partitions are searched for by the compiler itself, `opt_level` 3 and above": "collage",
        _SPARSE: "data_dep_optimization",
        "give sizes as te.var or relay.Any(); each call of an executor has its own": "dyn ShapeVar",
        "make random inputs outside of the model": "random",
        "memory is planned by the code generator": "memory_plan",
        _DEVICES: "fallback_device_type",
        _STRATEGY: "tec",
        "use what relay.transform has": "ToMixedPrecision FuseOps",
        _ANOTHER: "ext",
        "use relay.expr, relay.ty and relay.op": "base Id Op Type",
        "use relay.Call": "call",
        "make the node anew, as relay.Call(op, args, attrs, span=span)": "CallWithFields FunctionWithFields "
        "IfWithFields LetWithFields RefCreateWithFields RefReadWithFields RefWriteWithFields TupleGetItemWithFields "
        "TupleWithFields VarWithFields",
        "use call.attrs.NAME, or call.attrs.as_dict()": "attrs",
        "use reshape, which is a move of no data where it can be": "reshape_only",
        "use nn.dense and nn.sparse_dense": "dense sparse_dense",
    },
    "relay.op": {
        _STRATEGY: "OpImplementation OpSpecialization OpStrategy register register_alter_op_layout "
        "register_broadcast_schedule register_compute register_injective_schedule register_legalize register_pattern "
        "register_reduce_schedule register_schedule register_shape_func register_strategy strategy",
        _TRAINING: "register_gradient",
        _SIZES: "sparse_fill_empty_rows",
        "use numpy.fft before the model, or relay.op.stft": "dft",
        "floats and whole numbers have no bits in common on the core: use cast": "reinterpret",
        _DEVICES: "memory vm",
        _PRECISION: "register_mixed_precision_conversion",
        "use tvm.contrib.debugger.debug_executor": "debug",
        "use call.attrs.NAME, or call.attrs.as_dict()": "op_attrs",
    },
    "relay.nn": {
        _FIXED: "contrib_conv2d_gemm_weight_transform contrib_conv2d_gemm_without_weight_transform "
        "contrib_conv2d_nchwc contrib_conv2d_winograd_nnpack_weight_transform contrib_conv2d_winograd_weight_transform "
        "contrib_conv2d_winograd_without_weight_transform contrib_conv3d_winograd_weight_transform "
        "contrib_conv3d_winograd_without_weight_transform contrib_dense_pack contrib_depthwise_conv2d_nchwc",
        _TRAINING: "avg_pool2d_grad max_pool2d_grad conv2d_backward_weight",
        "no engine has numbers of single bits: use int8": "bitpack bitserial_conv2d bitserial_dense",
        _SPARSE: "sparse_add sparse_transpose",
        "use nn.dropout": "dropout_raw",
        "use nn.conv2d of slices of the two maps": "correlation",
        "keep the state outside: an input and an output of the model": "fifo_buffer",
        "use relay.Constant": "Constant",
    },
    "relay.op.contrib": {
        _ANOTHER: "aten acl arm_compute_lib bnns clml cmsisnn coreml cublas cudnn cutlass dnnl ethosn ethosu "
        "libtorch mrvl partition_for_cutlass partition_for_tensorrt tensorrt verilator vitis_ai",
    },
    "relay.qnn.op": {
        _QUANTISED: "simulated_quantize simulated_dequantize avg_pool2d",
        _STRATEGY: "canonicalizations layout_conversions legalizations register_qnn_canonicalize register_qnn_legalize",
        "rounding is to the nearest, halves away from zero: give requantize its argument": "requantize_config "
        "RequantizeConfig current_requantize_config",
        _FIXED: "contrib_dense_pack",
    },
    "relay.backend": {
        _STRATEGY: "te_compiler compile_engine",
        "use relay.build, whose result is the library": "graph_executor_codegen executor_factory aot",
        _EXECUTORS: "interpreter",
        "names are those of the model": "name_transforms utils",
        "for UMA, describe a chip in a JSON file; else use relay.op.contrib.neuron": "contrib",
    },
    "relay.build_module": {
        "use relay.build": "BuildModule",
        "use relay.create_executor": "AotExecutor GraphExecutor VMExecutor",
        "use tvm.relay.backend.Executor and Runtime": "Executor Runtime",
    },
    "relay.vision": {
        "use vision.all_class_non_max_suppression": "regular_non_max_suppression proposal",
    },
    "relay.transform": {
        _TRAINING: "gradient FirstOrderGradient LazyGradientInit",
        _TREES: "Defunctionalization EtaExpand LambdaLift PartialEvaluate ToCPS to_cps un_cps",
        _SPARSE: "Conv2dToSparse Conv2dToSparse2 DenseToSparse SimplifyFCTranspose",
        _QUANTISED: "FakeQuantizationToInteger fake_quantization_to_integer",
        _FIXED: "infer_layout_utils",
        _PRECISION: "mixed_precision recast",
        _DEVICES: "RecoverVirtualDeviceMap",
        "use relay.build_buckets": "FlexibleShapeDispatch",
        _OWN_COMPILERS: "CollagePartition InlineCompilerFunctionsBoundTo MarkCompilerFunctionsAsExtern "
        "OutlineCompilerFunctionsWithExistingGlobalSymbols CapturePostDfsIndexInSpans",
        "import the model with another batch size": "ChangeBatch",
        "skip layers by giving ConvertLayout the operators to convert": "LayoutConfig",
        "memory is planned by the code generator": "ManifestLifetimes AnnotateSpans",
        "use tvm.transform.PassContext": "build_config",
        "use relay.transform.InferType()": "InferTypeLocal",
    },
    "relay.analysis": {
        _TYPES: "all_type_vars bound_type_vars free_type_vars unmatched_cases",
        _REPORT: "get_total_mac_number count_layers LayerCounter AnalyzeOperationsDistribution "
        "analyze_operations_distribution",
        _TREES: "check_basic_block_normal_form detect_feature Feature",
        _SPARSE: "process_params search_fc_transpose SparseAnalysisResult sparse_dense sparse_conv2d",
        _QUANTISED: "list_fake_quantized_op_freqs get_calibration_data",
        "use relay.transform.PartitionGraph, whose functions are the regions": "AnnotatedRegionSet CallGraph",
        "use relay.transform.FuseOps, whose functions have the attribute Primitive": "extract_fused_functions",
        "use `post_order_visit` and IRModule.from_expr": "extract_intermdeiate_expr",
    },
    "relay.frontend": {
        _TYPES: "ChangeDatatype",
        "use relay.transform.InferType and relay.testing.run_infer_type": "common",
    },
    "relay.testing": {
        _TYPES: "Prelude count make_nat_expr make_nat_value nat",
        _TRAINING: "check_grad count_ops gradient",
        _STRATEGY: "temp_op_attr",
        _ANOTHER: "byoc",
        _LOOK: "py_converter run_as_python",
        _EXECUTORS: "enabled_targets rand _np_randn_from_type",
        _MODELS: "darknet synthetic tf tflite",
    },
}
"""By place: what to use instead, of which names."""

_TOP = ("relay", "relay.expr", "relay.expr_functor", "relay.ty", "relay.vm")
"""What stands in them, stands in `relay`, too, and so do operators."""

_OF_QUANTISED = "relay.qnn.op"
"""What stands in it, stands in `relay.qnn`, too."""

OUT: Mapping[str, str] = {
    "autotvm": "schedules are searched for by the compiler: `neuron-cc compile -O3`, or tvmc tune",
    "auto_scheduler": "schedules are searched for by the compiler: `neuron-cc compile -O3`, or tvmc tune",
    "micro": "there is no code for microcontrollers; relay.build makes a library for TVM's runtime",
    "parser": _TEXT,
    "runtime.profiler_vm": "tvm.contrib.debugger.debug_executor has each operator's result and time",
    "relay.backend.contrib.uma": "describe a chip in a JSON file, or write a schedule rule (CONTRIBUTING.md)",
}
"""Packages of TVM 0.18 that stay out, and where their work is done."""

TE_SCHEDULES = "schedules of te are gone with TVM 0.18; here kernels are scheduled by rules (CONTRIBUTING.md)"


def instead_of(place: str, name: str) -> str | None:
    """What to use instead of a name, None if nothing is known of it."""
    places = ("relay", "relay.op") if place in _TOP else (_OF_QUANTISED if place == "relay.qnn" else place,)
    found = (hint for each in places for hint, names in PLACES.get(each, {}).items() if name in names.split())
    return next(found, _PRIVATE if name.startswith("_") and not name.startswith("__") else None)


def install(modules: Mapping[str, ModuleType]) -> None:
    """From now on the modules, by their place, and `import` say what to use instead; again changes nothing."""
    for place, module in modules.items():
        vars(module)["__getattr__"] = _telling(place)
        vars(module).setdefault("__path__", [])  # a package, so that what is imported from it is asked of `_Absent`
    for name, hint in OUT.items():
        if name.count(".") == 0 and not hasattr(tvm, name):
            stub = ModuleType(f"tvm.{name}", f"Not here: {hint}.")
            stub.__path__ = []  # a package, so that what is imported from it is asked of `_Absent`
            vars(stub)["__getattr__"] = _refusing(f"tvm.{name}", hint)
            setattr(tvm, name, stub)
            sys.modules[f"tvm.{name}"] = stub
    tvm.te.create_schedule = _refused("tvm.te.create_schedule", TE_SCHEDULES)
    sys.meta_path.append(_Absent())


def _telling(place: str) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        hint = instead_of(place, name)
        told = f"; instead: {hint}" if hint else "; docs/relay.md lists what is"
        raise AttributeError(f"'{place}.{name}' is not here{told}", name=name)

    return find


def _refusing(package: str, hint: str) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        raise AttributeError(f"'{package}.{name}' is not here and stays out; instead: {hint}", name=name)

    return find


def _refused(name: str, hint: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        """Raises AttributeError: it stays out."""
        del args, kwargs
        raise AttributeError(f"'{name}' is not here and stays out; instead: {hint}")

    return call


class _Absent(MetaPathFinder):
    """Asked last: an `import` of what is not here says what to use instead."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for what is nothing of Relay. Raises ModuleNotFoundError: it is, and not here."""
        del path, target
        root, _, inner = fullname.partition(".")
        place, _, name = inner.rpartition(".")
        hint = instead_of(place, name) or next((OUT[key] for key in OUT if f"{inner}.".startswith(f"{key}.")), None)
        if hint is not None and root in ("tvm", "tvm_neuron"):
            raise ModuleNotFoundError(f"'tvm.{inner}' is not here; instead: {hint}")
        return None
