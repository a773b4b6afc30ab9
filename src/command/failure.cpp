#include "command/failure.h"

#include <new>
#include <string_view>

#include "core/error.h"

namespace gradflow {

std::vector<std::string> failure_lines(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return error->lines();
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr)
    return {"not enough memory; lower model.depth, model.width or train.batch, or set compute.recompute to true"};
  // LibTorch's messages go on with a stack trace; their first line says what happened.
  const std::string_view what = failure.what();
  return {"unexpected: " + std::string(what.substr(0, what.find('\n')))};
}

}  // namespace gradflow
