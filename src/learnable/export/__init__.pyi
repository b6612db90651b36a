from .onnx_file import to_onnx as to_onnx
