#pragma once

#include "model/batch.h"
#include "model/tensor.h"

namespace gradflow::testing {

/// Where the golden tests run: the CPU, or what the environment variable GRADFLOW_TEST_DEVICE names ("cuda").
at::Device test_device();

/// The batch on `device`.
Batch moved(const Batch& batch, at::Device device);

}  // namespace gradflow::testing
