#include "data/requirements.h"

#include <fmt/format.h>

#include "config/derived.h"
#include "core/error.h"

namespace gradflow {

std::int64_t vocabulary_of(const DataConfig& data, std::int64_t least) {
  const std::int64_t vocabulary = data.vocabulary.value_or(*default_vocabulary(data));
  if (vocabulary < least)
    throw Error(fmt::format("data.vocabulary: {} symbols are too few for the task {}; write {} or more", vocabulary,
                            name_of(data.task), least));
  return vocabulary;
}

void require_tokens(const DataConfig& data, std::int64_t least) {
  const std::int64_t padding = padding_tokens(data);
  const std::int64_t tokens = data.context - padding;
  if (tokens >= least) return;
  throw Error(
      fmt::format("data.context: {} tokens of which {} are padding leave {}, the task {} needs {}; write {} or more",
                  data.context, padding, tokens, name_of(data.task), least, least + padding) +
      (padding > 0 ? " or a smaller data.padding_fraction" : ""));
}

}  // namespace gradflow
