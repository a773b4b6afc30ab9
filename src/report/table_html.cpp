#include "report/table_html.h"

#include <fmt/format.h>

#include "report/html.h"

namespace gradflow {

std::string ink_html(Ink ink) {
  return fmt::format(R"html(<span class="key{}" style="--c:var(--s{})"></span>)html", ink.dashed ? " dashed" : "",
                     ink.slot);
}

std::string key_html(const ReportGroup& group) { return ink_html(group.ink) + escaped_html(group.label); }

}  // namespace gradflow
