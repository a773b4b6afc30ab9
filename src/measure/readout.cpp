#include "measure/readout.h"

#include <atomic>

namespace gradflow {
namespace {

std::atomic<std::int64_t> read_back_count{0};
std::atomic<int> cpus_as_device{0};

}  // namespace

bool stays_on_device(const at::Tensor& tensor) { return !tensor.is_cpu() || cpus_as_device > 0; }

std::vector<double> read_back(const at::Tensor& numbers) {
  ++read_back_count;
  const at::Tensor host = numbers.to(at::kCPU).contiguous();
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

std::int64_t read_backs() { return read_back_count; }

CpuAsDevice::CpuAsDevice() { ++cpus_as_device; }
CpuAsDevice::~CpuAsDevice() { --cpus_as_device; }

void Readout::add(const at::Tensor& numbers, Receiver receive) {
  numbers_.push_back(numbers.detach().flatten().to(at::kDouble));
  parts_.push_back({numbers.numel(), std::move(receive)});
}

void Readout::read() {
  if (numbers_.empty()) return;
  const std::vector<double> all = read_back(at::cat(numbers_));
  const double* next = all.data();
  for (const Part& part : parts_) {
    part.receive(next);
    next += part.count;
  }
  numbers_.clear();
  parts_.clear();
}

}  // namespace gradflow
