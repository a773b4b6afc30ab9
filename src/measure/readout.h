#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/tensor.h"

namespace gradflow {

/// Whether numbers measured on `tensor` wait where it is until a step is over, because reading one would make the host
/// wait for the device: always on a GPU. On the CPU a number is there when it is computed.
bool stays_on_device(const at::Tensor& tensor);

/// Copies `numbers` (float64) to the host. On a device this waits until everything queued before is computed: nothing
/// else in a step may read, and a step calls this once.
std::vector<double> read_back(const at::Tensor& numbers);

/// How often `read_back` was called in this process.
std::int64_t read_backs();

/// While it lives, numbers on the CPU are kept back as on a GPU: for tests of that path where there is none.
class CpuAsDevice {
 public:
  CpuAsDevice();
  ~CpuAsDevice();
  CpuAsDevice(const CpuAsDevice&) = delete;
  CpuAsDevice& operator=(const CpuAsDevice&) = delete;
};

/// The numbers of one step that lie on a device, gathered from whoever measured them, for one transfer.
class Readout {
 public:
  using Receiver = std::function<void(const double*)>;

  /// `numbers`, of any shape and dtype, take part; `receive` gets them as doubles, in their order.
  void add(const at::Tensor& numbers, Receiver receive);
  /// The transfer; then every receiver in the order of `add`.
  void read();

 private:
  struct Part {
    std::int64_t count;
    Receiver receive;
  };
  std::vector<at::Tensor> numbers_;
  std::vector<Part> parts_;
};

}  // namespace gradflow
