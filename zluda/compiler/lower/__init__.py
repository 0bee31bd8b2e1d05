"""PTX tree to LLVM IR text: the functions, registers, memory and calls of the kernels asked for and what they reach."""
