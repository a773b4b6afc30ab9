#include "model/mapped_tensor.h"

#include <atomic>
#include <memory>

#include "core/mapped_memory.h"

namespace gradflow {

at::Tensor mapped_zeros(at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (!options.device().is_cpu()) return at::zeros(sizes, options);
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
  constexpr std::size_t places = 12;  // of a page, at which all blocks begin
  static std::atomic<std::size_t> count{0};
  const std::size_t offset = cache_gap * (count++ % places);
  const std::shared_ptr<std::byte> block = map_memory(bytes + offset);
  return at::from_blob(
      block.get() + offset, sizes, [block](void*) {}, options);
}

}  // namespace gradflow
