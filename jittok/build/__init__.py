"""From a tokenizer's specification to the arrays that kernels read."""
