"""Checks that gradients can be exchanged: they must be real and dense."""

import torch
from torch import Tensor, nn

from talka.errors import InvalidValueError


def check_parameters(model: nn.Module) -> None:
    """Raise InvalidValueError if a trained parameter has complex or sparse gradients."""
    ignored_by_ddp = set(getattr(model, "_ddp_params_and_buffers_to_ignore", ()))
    for module_name, module in model.named_modules():
        is_sparse = isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if parameter.requires_grad and name not in ignored_by_ddp:
                check_gradient(name, parameter, is_sparse=is_sparse)


def check_gradient(name: str, gradient: Tensor, *, is_sparse: bool = False) -> None:
    """Raise InvalidValueError if a tensor is complex, or if it is or will be sparse."""
    if gradient.is_complex():
        raise InvalidValueError(
            f"the data type of parameter {name!r}",
            gradient.dtype,
            "real, since exchanges average real values; store its real and imaginary parts as two "
            "real parameters and join them in forward() with torch.complex",
        )
    if is_sparse or gradient.layout != torch.strided:
        raise InvalidValueError(
            f"the gradient of parameter {name!r}",
            "sparse",
            "dense; build its nn.Embedding or nn.EmbeddingBag with sparse=False (a sparse spec such "
            "as 'topk:0.01+ef' still sends only its largest entries)",
        )
