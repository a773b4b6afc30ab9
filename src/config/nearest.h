#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow {

/// Edits (insert, delete, replace, swap of neighbours) between two words, capitals ignored; only their first 64 bytes
/// count.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word with the smallest distance, the first among equals; `words` is not empty.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

/// Whether the nearest word is near enough to be what was meant: a third of it may differ, or it begins with `word`.
bool is_near(std::string_view word, std::string_view nearest);

/// What a path that is no key may have meant, by spelling, by the last component at another level, and by names that
/// other programs use: the nearest keys, at most three of equal distance. With `is_group`, groups of keys ("model").
std::vector<std::string_view> nearest_keys(std::string_view path, bool is_group);

/// "did you mean train.warmup?"
std::string did_you_mean(std::span<const std::string_view> keys);
/// The same for a file, where a key at another level than `path` is shown as it is written there:
/// "did you mean train.warmup, written "train": {"warmup": …}?"
std::string did_you_mean_in_file(std::string_view path, bool is_group);

}  // namespace gradflow
