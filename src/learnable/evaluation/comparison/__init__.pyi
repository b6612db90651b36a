from .contest import compare as compare
