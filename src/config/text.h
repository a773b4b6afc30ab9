#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gradflow {

/// Text of a user as one printable line: control characters and bytes that are not UTF-8 as escapes, cut at about 60
/// characters.
std::string shown(std::string_view text);
/// The same in double quotes.
std::string quoted(std::string_view text);

/// Index of the first byte that is not UTF-8 (overlong forms and surrogates included), or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// "a, b, c".
std::string listed(std::span<const std::string_view> words);

}  // namespace gradflow
