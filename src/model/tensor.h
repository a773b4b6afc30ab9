#pragma once

// The part of LibTorch that the program uses: tensors, operators and autograd, not torch::nn and torch::optim, whose
// headers take three times as long to compile. Precompiled for the folders that may use LibTorch.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

// LibTorch's headers define macros with common names.
#undef LOG
#undef CHECK
