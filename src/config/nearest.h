#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gradflow {

/// Edits (insert, delete, replace, swap of neighbours) between two words, capitals ignored; only their first 64 bytes
/// count.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word with the smallest distance, the first among equals; `words` is not empty.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

/// "did you mean train.warmup?" for a path that is no key: by spelling, by the last component at another level, and by
/// names that other programs use. With `is_group`, groups of keys ("model") are meant.
std::string did_you_mean(std::string_view path, bool is_group);

}  // namespace gradflow
