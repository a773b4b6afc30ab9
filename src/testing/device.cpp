#include "testing/device.h"

#include <cstdlib>

#include "command/device.h"

namespace gradflow::testing {

at::Device test_device() {
  const char* named = std::getenv("GRADFLOW_TEST_DEVICE");
  return device_named(named != nullptr ? named : "cpu");
}

Batch moved(const Batch& batch, at::Device device) {
  return {.inputs = batch.inputs.to(device),
          .targets = batch.targets.to(device),
          .real = batch.real.defined() ? batch.real.to(device) : batch.real,
          .tokens = batch.tokens};
}

}  // namespace gradflow::testing
