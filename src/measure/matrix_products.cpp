#include "measure/matrix_products.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/parts.h"

namespace gradflow {
namespace {

/// Of the BLAS inside LibTorch, column-major: c = op(a)·op(b). Called directly, since an operator's own overhead would
/// be most of the time in small products.
template <class T>
using Gemm = void(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*,
                  const T*, const int*, const T*, T*, const int*);

/// Null where the BLAS does not export it.
template <class T>
Gemm<T>* blas_gemm(const char* name) {
  return reinterpret_cast<Gemm<T>*>(dlsym(RTLD_DEFAULT, name));
}

/// Row-major c [m, n] = op(a)·op(b), with k summed over.
template <class T>
void multiply(Gemm<T>* gemm, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
              const T* a, const T* b, T* c) {
  const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
  const int rows = whole(n), columns = whole(m), depth = whole(k), lda = whole(transpose_b ? k : n),
            ldb = whole(transpose_a ? m : k), ldc = whole(n);
  const T one = 1, zero = 0;
  // The memory of a row-major matrix is that of its transpose column-major, so the factors change places.
  gemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &rows, &columns, &depth, &one, b, &lda, a, &ldb, &zero, c,
       &ldc);
}

template <class T>
void step_on_cpu(Gemm<T>* gemm, const std::vector<MatrixProduct>& products, T* weights, T* gradients, T* inputs,
                 T* outputs, T* input_gradients) {
  std::int64_t offset = 0;
  for (const MatrixProduct& p : products) {
    multiply(gemm, false, true, p.rows, p.out, p.in, inputs, weights + offset, outputs);
    offset += p.in * p.out;
  }
  for (std::size_t i = products.size(); i-- > 0;) {
    const MatrixProduct& p = products[i];
    offset -= p.in * p.out;
    multiply(gemm, false, false, p.rows, p.in, p.out, outputs, weights + offset, input_gradients);
    multiply(gemm, true, false, p.out, p.in, p.rows, outputs, inputs, gradients + offset);
  }
}

bool ends_with(const std::string& name, std::string_view ending) { return std::string_view(name).ends_with(ending); }

}  // namespace

std::optional<std::vector<MatrixProduct>> matrix_products(const Config& config, const Layout& layout) {
  if (config.model.stack == StackKind::resnet) return std::nullopt;
  const std::int64_t rows =
      config.train.batch * (config.model.stack == StackKind::transformer ? config.data.context : 1);
  std::vector<MatrixProduct> products;
  for (const SegmentSpec& segment : layout.segments) {
    if (segment.sublayer == "embedding") continue;  // looked up, not multiplied
    for (const ParameterSpec& parameter : segment.parameters) {
      if (parameter.shape.size() != 2 || ends_with(parameter.name, ".k.weight") ||
          ends_with(parameter.name, ".v.weight"))
        continue;
      const std::int64_t together = ends_with(parameter.name, ".q.weight") ? 3 : 1;
      products.push_back({rows, parameter.shape[1], together * parameter.shape[0]});
    }
  }
  if (config.model.tie_embeddings) products.push_back({rows, config.model.width, config.data.vocabulary.value()});
  return products;
}

MatrixProductClock::MatrixProductClock(std::vector<MatrixProduct> products, const ComputeConfig& compute,
                                       std::int64_t accumulation, at::Device device)
    : products_(std::move(products)), accumulation_(accumulation) {
  std::int64_t weights = 0, inputs = 0, outputs = 0;
  for (const MatrixProduct& p : products_) {
    weights += p.in * p.out;
    inputs = std::max(inputs, p.rows * p.in);
    outputs = std::max(outputs, p.rows * p.out);
    operations_ += p.operations() * static_cast<double>(accumulation);
  }
  const auto options = at::TensorOptions().dtype(activation_dtype(compute.dtype)).device(device);
  weights_ = at::full({weights}, 0.01, options);
  gradients_ = at::zeros({weights}, options);
  inputs_ = at::ones({inputs}, options);
  outputs_ = at::zeros({outputs}, options);
  input_gradients_ = at::zeros({inputs}, options);
}

void MatrixProductClock::run_once() {
  const bool cpu = weights_.is_cpu();
  static auto* const sgemm = blas_gemm<float>("sgemm_");
  static auto* const dgemm = blas_gemm<double>("dgemm_");
  if (cpu && weights_.scalar_type() == at::kFloat && sgemm != nullptr) {
    step_on_cpu(sgemm, products_, weights_.data_ptr<float>(), gradients_.data_ptr<float>(), inputs_.data_ptr<float>(),
                outputs_.data_ptr<float>(), input_gradients_.data_ptr<float>());
    return;
  }
  if (cpu && weights_.scalar_type() == at::kDouble && dgemm != nullptr) {
    step_on_cpu(dgemm, products_, weights_.data_ptr<double>(), gradients_.data_ptr<double>(),
                inputs_.data_ptr<double>(), outputs_.data_ptr<double>(), input_gradients_.data_ptr<double>());
    return;
  }
  const auto matrix = [](const at::Tensor& buffer, std::int64_t offset, std::int64_t rows, std::int64_t columns) {
    return buffer.narrow(0, offset, rows * columns).view({rows, columns});
  };
  std::int64_t offset = 0;
  for (const MatrixProduct& p : products_) {
    at::Tensor y = matrix(outputs_, 0, p.rows, p.out);
    at::mm_out(y, matrix(inputs_, 0, p.rows, p.in), matrix(weights_, offset, p.out, p.in).t());
    offset += p.in * p.out;
  }
  for (std::size_t i = products_.size(); i-- > 0;) {
    const MatrixProduct& p = products_[i];
    offset -= p.in * p.out;
    const at::Tensor dy = matrix(outputs_, 0, p.rows, p.out);
    at::Tensor dx = matrix(input_gradients_, 0, p.rows, p.in), dw = matrix(gradients_, offset, p.out, p.in);
    at::mm_out(dx, dy, matrix(weights_, offset, p.out, p.in));
    at::mm_out(dw, dy.t(), matrix(inputs_, 0, p.rows, p.in));
  }
}

double MatrixProductClock::seconds(ClockKind clock) {
  const at::NoGradGuard no_gradients;
  const auto time = [&](std::int64_t repeats) {
    const double start = seconds_on(clock);
    for (std::int64_t r = 0; r < repeats * accumulation_; ++r) run_once();
    if (!weights_.is_cpu()) gradients_.narrow(0, 0, 1).to(at::kCPU);  // waits for the device
    return (seconds_on(clock) - start) / static_cast<double>(repeats);
  };
  const double once = time(1);
  constexpr double enough = 0.05;
  return time(std::max<std::int64_t>(1, std::llround(enough / std::max(once, 1e-9))));
}

}  // namespace gradflow
