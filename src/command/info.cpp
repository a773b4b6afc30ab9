#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "command/command.h"
#include "command/environment.h"
#include "core/build_info.h"
#include "core/machine.h"
#include "model/tensor.h"

namespace gradflow {
namespace {

/// What one thread reaches in a float32 product of two n × n matrices, in GFLOP/s, the best of several: tells a
/// reference BLAS (about 4) from a tuned one (30 to 160) whatever it calls itself.
double matrix_product_speed(std::int64_t n) {
  using Clock = std::chrono::steady_clock;
  const at::NoGradGuard no_gradients;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor a = at::ones({n, n}), b = at::ones({n, n});
  at::Tensor product = at::mm(a, b);
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const Clock::time_point start = Clock::now();
    at::mm_out(product, a, b);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, 2.0 * static_cast<double>(n * n * n) / seconds.count() / 1e9);
  }
  at::set_num_threads(threads);
  return best;
}

void line(const char* what, const std::string& text) { fmt::print("{:<11}{}\n", what, text); }

Exit run() {
  const BuildInfo& build = build_info();
  const Environment found = environment();
  line("gradflow",
       fmt::format("{}, git {}, {} build, {}", build.version, build.git_revision, build.build_type, build.compiler));
  line("LibTorch", fmt::format("{}, {}", found.libtorch, found.libtorch_path));
  line("BLAS", fmt::format("{}, kernels: {}, {:.0f} GFLOP/s in a float32 product of 512 x 512 on one thread",
                           found.blas, found.blas_kernel, matrix_product_speed(512)));
  line("SIMD", found.simd + " (LibTorch's own kernels; ATEN_CPU_CAPABILITY=default|avx2|avx512 lowers it)");
  line("CPU", fmt::format("{}, {} {} usable", cpu_model(), found.cores, found.cores == 1 ? "core" : "cores"));
  line("threads", "1 a run unless compute.threads says more; it wins over OMP_NUM_THREADS");
  line("devices", found.cuda_devices == 0   ? "cpu"
                  : found.cuda_devices == 1 ? "cpu, cuda:0"
                                            : fmt::format("cpu, cuda:0 ... cuda:{}", found.cuda_devices - 1));
  line("CUDA", found.cuda);
  return Exit::done;
}

}  // namespace

void add_info(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("info", "versions, BLAS and its speed, SIMD level, threads, devices");
  command->footer(
      "BLAS: what multiplies matrices, the processor family whose kernels it chose, and its measured speed.\n"
      "CUDA: the devices, or why none can be used.");
  command->callback([&action] { action = run; });
}

}  // namespace gradflow
