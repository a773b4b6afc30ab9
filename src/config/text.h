#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gradflow {

/// Text of a user as one printable line: control characters and bytes that are not UTF-8 as escapes, cut where it is
/// longer than about `longest` bytes.
std::string shown(std::string_view text, std::size_t longest = 60);
/// A path, in full.
std::string shown_path(std::string_view path);
/// Like `shown`, in double quotes.
std::string in_quotes(std::string_view text);

/// Index of the first byte that is not UTF-8 (overlong forms and surrogates included), or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// "a, b, c".
std::string listed(std::span<const std::string_view> words);

}  // namespace gradflow
