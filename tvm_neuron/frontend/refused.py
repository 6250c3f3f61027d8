"""RefusedError: why a converter does not take a form of an operator."""


class RefusedError(Exception):
    """The end of the sentence that begins with the operator and "can't be imported:"."""
