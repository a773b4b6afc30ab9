#pragma once

#include <string>
#include <string_view>

namespace gradflow {

// Text that others wrote (names, paths, keys) on its way into a page. Escaping is done here and nowhere else.

/// For the text and the quoted attributes of HTML and SVG: & < > " and ' become entities. What XML cannot hold, bytes
/// that are no UTF-8 and control characters, becomes U+FFFD.
std::string escaped_html(std::string_view text);

/// For the cells and lines of a Markdown file: what Markdown would read as markup is preceded by a backslash, < and &
/// become entities, line breaks become blanks.
std::string escaped_markdown(std::string_view text);

/// JSON for a <script> element, which a "</" would end: every < is written as \u003c, which says the same.
std::string escaped_script(const std::string& json);

/// The text with every byte that is no UTF-8, and every control character but tab and line feed, replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace gradflow
