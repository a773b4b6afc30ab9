#include "report/html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gradflow {
namespace {

TEST(EscapedHtml, MarkupBecomesText) {
  EXPECT_EQ(escaped_html(R"(<b a="1" c='2'>&amp;</b>)"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escaped_html("‖∂L/∂x‖ α·x"), "‖∂L/∂x‖ α·x");
}

TEST(EscapedHtml, WhatXmlCannotHoldIsReplaced) {
  EXPECT_EQ(escaped_html("a\x01z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(escaped_html("a\tb\nc"), "a\tb\nc");
}

TEST(ValidUtf8, ReplacesEachByteThatIsNone) {
  EXPECT_EQ(valid_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(valid_utf8("\xC3"), "\xEF\xBF\xBD");                                  // cut off
  EXPECT_EQ(valid_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // longer than need be
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // half of a pair
  EXPECT_EQ(valid_utf8("\xF0\x9F\x98\x80 é €"), "\xF0\x9F\x98\x80 é €");
}

TEST(EscapedMarkdown, MarkupBecomesText) {
  EXPECT_EQ(escaped_markdown("a|b *c* _d_ `e` [f](g) <h> & \\ #i"),
            "a\\|b \\*c\\* \\_d\\_ \\`e\\` \\[f\\](g) &lt;h> &amp; \\\\ \\#i");
  EXPECT_EQ(escaped_markdown("one\ntwo"), "one two");
}

TEST(EscapedScript, NothingEndsTheElementAndTheJsonSaysTheSame) {
  const nlohmann::json json = {{"a", "</script><!--<script>"}, {"b", "<//</"}};
  const std::string text = escaped_script(json.dump());
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text), json);
}

}  // namespace
}  // namespace gradflow
