#include "config/resolved.h"

#include <algorithm>

#include "config/fields.h"

namespace gradflow {

Config resolved(Config config) {
  for (const auto& field : fields()) field->resolve(config);
  return config;
}

Json to_json(const Config& config) {
  const Config full = resolved(config);
  Json out = Json::object();
  for (const auto& field : fields()) {
    std::string pointer = "/" + std::string(field->key());
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    out[Json::json_pointer(pointer)] = field->value(full);
  }
  return out;
}

}  // namespace gradflow
